//! The graph of an exploration: how each state was first reached, and what follows it.

/// A state's number, in order of discovery.
pub type Number = u32;

/// Edges in both senses that are needed: back along the first path, and forward to every successor.
#[derive(Default)]
pub struct Graph {
    parents: Vec<(Number, u16)>,
    ends: Vec<u32>,
    targets: Vec<Number>,
    done: Vec<Number>,
}

impl Graph {
    /// A state was discovered as the nth successor of another one.
    pub fn discover(&mut self, parent: Number, nth: usize) {
        self.parents.push((parent, nth as u16));
    }

    /// The state whose turn it is has this successor.
    pub fn lead(&mut self, to: Number) {
        self.targets.push(to);
    }

    /// That were all successors of that state.
    pub fn close(&mut self) {
        self.ends.push(self.targets.len() as u32);
    }

    /// Everything has ended in this state.
    pub fn end(&mut self, state: Number) {
        self.done.push(state);
    }

    /// How many states have all their successors.
    pub fn closed(&self) -> usize {
        self.ends.len()
    }

    /// States in which everything has ended.
    pub fn ended(&self) -> usize {
        self.done.len()
    }

    /// Edges.
    pub fn transitions(&self) -> usize {
        self.targets.len()
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.parents.capacity() * size_of::<(Number, u16)>()
            + (self.ends.capacity() + self.targets.capacity() + self.done.capacity()) * 4
    }

    /// The way to a state from the first one: which successor to take each time.
    pub fn path(&self, mut state: Number) -> Vec<u16> {
        let mut path = Vec::new();
        while state != 0 {
            let (parent, nth) = self.parents[state as usize];
            path.push(nth);
            state = parent;
        }
        path.reverse();
        path
    }

    /// The first state from which no way leads to an end; states whose successors are not known are
    /// taken for such that have one. Most edges lead to later states,
    /// so sweeping backwards settles after a few sweeps.
    pub fn stuck(&self) -> Option<Number> {
        let mut reaches = vec![false; self.parents.len()];
        self.done.iter().for_each(|at| reaches[*at as usize] = true);
        reaches[self.ends.len()..].fill(true);
        loop {
            let mut changed = false;
            for state in (0..self.ends.len()).rev() {
                if !reaches[state] && self.successors(state).any(|to| reaches[to as usize]) {
                    reaches[state] = true;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let stuck = reaches.iter().position(|reaches| !reaches)?;
        Some(stuck as Number)
    }

    fn successors(&self, state: usize) -> impl Iterator<Item = Number> {
        let from = state.checked_sub(1).map_or(0, |before| self.ends[before]);
        let range = from as usize..self.ends[state] as usize;
        self.targets[range].iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 → 1 → 2 → 1, 1 → 3; the end is 3.
    fn with_a_loop(end: bool) -> Graph {
        let mut graph = Graph::default();
        graph.discover(0, 0);
        for (parent, to, seen) in [(0, &[1][..], 1), (1, &[2, 3], 2), (2, &[1], 0), (3, &[], 0)] {
            for (nth, &to) in to.iter().enumerate() {
                graph.lead(to);
                if nth < seen {
                    graph.discover(parent, nth);
                }
            }
            graph.close();
        }
        if end {
            graph.end(3);
        }
        graph
    }

    #[test]
    fn a_loop_with_a_way_out_is_not_stuck() {
        assert_eq!(with_a_loop(true).stuck(), None);
        assert_eq!(with_a_loop(false).stuck(), Some(0));
    }

    #[test]
    fn a_path_is_the_first_one_found() {
        assert_eq!(with_a_loop(true).path(3), [0, 1]);
        assert!(with_a_loop(true).path(0).is_empty());
    }
}
