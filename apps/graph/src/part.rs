//! What one node has of a graph, and what nodes read of each other.

use crate::cut::Cut;
use crate::graph::Graph;

/// A graph and how it is cut: the same at all nodes.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its cut.
    pub cut: &'a Cut,
}

impl Plan<'_> {
    pub(crate) fn fingerprint(&self) -> u64 {
        self.graph.fingerprint() ^ self.cut.fingerprint()
    }
}

/// What a node has for others, as a row of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// The data of its masters that have replicas. Those with replicas at the same nodes stand
    /// together: memory that is shared in packs is read by few nodes then.
    Data,
    /// The sums of its replicas over the edges here, by master, then by vertex.
    Sums,
}

impl Column {
    pub const ALL: [Column; 2] = [Column::Data, Column::Sums];
}

/// Which places of another node's column this node reads, and which of its own vertices each is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    /// Ascending.
    pub places: Vec<u32>,
    /// Here: numbers of [`Part::vertices`].
    pub own: Vec<u32>,
}

/// See the module. A vertex has a number here, its place in `vertices`.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub me: usize,
    pub nodes: usize,
    /// Masters, ascending, then replicas, by master, then ascending.
    pub vertices: Vec<u32>,
    pub masters: usize,
    /// Edges that leave each vertex, at all nodes.
    pub out_degrees: Vec<u32>,
    /// Edges here, by target and then by source: sums are made in this order.
    pub into: Rows,
    /// The same by source.
    pub out: Rows,
    /// The vertices of the column of data.
    pub shared: Vec<u32>,
    /// The vertices of the column of sums.
    pub summed: Vec<u32>,
    /// What this node reads, by column and node.
    wants: [Vec<Wants>; 2],
    /// Which places of its columns other nodes read, by column and node.
    wanted: [Vec<Vec<u32>>; 2],
    /// Words of each node's columns.
    words: Vec<[usize; 2]>,
    /// Masters of each node.
    pub mastered: Vec<usize>,
    /// Words that a node wants of another one's column, by column, writer and reader.
    traffic: [Vec<Vec<usize>>; 2],
}

/// For each vertex, the other ends of its edges with their weights.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    starts: Vec<u32>,
    ends: Vec<(u32, u32)>,
}

impl Rows {
    /// Of edges from the first to the second, with a weight, which keep their order in a row.
    fn new(vertices: usize, edges: impl Iterator<Item = (u32, u32, u32)> + Clone) -> Rows {
        let mut starts = vec![0; vertices + 1];
        for (from, ..) in edges.clone() {
            starts[from as usize + 1] += 1;
        }
        for at in 0..vertices {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut ends = vec![(0, 0); starts[vertices] as usize];
        for (from, to, weight) in edges {
            let place = &mut next[from as usize];
            ends[*place as usize] = (to, weight);
            *place += 1;
        }
        Rows { starts, ends }
    }

    pub fn of(&self, vertex: u32) -> &[(u32, u32)] {
        let at = vertex as usize;
        &self.ends[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// A vertex that is not here.
const ABSENT: u32 = u32::MAX;

impl Part {
    pub fn of(plan: Plan<'_>, me: usize) -> Part {
        let (graph, cut) = (plan.graph, plan.cut);
        let nodes = cut.nodes();
        let all = || 0..graph.vertices();
        let mastered = |node: usize| all().filter(move |it| cut.master(*it) == node);

        let mut vertices: Vec<u32> = mastered(me).collect();
        let masters = vertices.len();
        for owner in (0..nodes).filter(|owner| *owner != me) {
            vertices.extend(mastered(owner).filter(|it| cut.is_at(*it, me)));
        }
        let mut own = vec![ABSENT; graph.vertices() as usize];
        for (number, vertex) in (0..).zip(&vertices) {
            own[*vertex as usize] = number;
        }

        let here = graph.edges().iter().zip(cut.node_of());
        let here = here.filter(|(_, node)| usize::from(**node) == me);
        let ends = here.map(|(edge, _)| {
            let (source, target) = (own[edge.source as usize], own[edge.target as usize]);
            (source, target, edge.weight)
        });
        let out = Rows::new(vertices.len(), ends.clone());
        let into = Rows::new(
            vertices.len(),
            ends.map(|(from, to, weight)| (to, from, weight)),
        );

        let mut part = Part {
            me,
            nodes,
            masters,
            out_degrees: (vertices.iter())
                .map(|it| graph.out_degrees()[*it as usize])
                .collect(),
            into,
            out,
            shared: Vec::new(),
            summed: Vec::new(),
            wants: [vec![Wants::default(); nodes], vec![Wants::default(); nodes]],
            wanted: [vec![Vec::new(); nodes], vec![Vec::new(); nodes]],
            words: vec![[0; 2]; nodes],
            mastered: vec![0; nodes],
            traffic: [vec![vec![0; nodes]; nodes], vec![vec![0; nodes]; nodes]],
            vertices,
        };
        part.columns(graph, cut, &own);
        part
    }

    /// Goes through all columns of all nodes as they are laid out, and notes what concerns this
    /// node.
    fn columns(&mut self, graph: &Graph, cut: &Cut, own: &[u32]) {
        let me = self.me;
        let mut by_master = vec![Vec::new(); self.nodes];
        for vertex in 0..graph.vertices() {
            by_master[cut.master(vertex)].push(vertex);
        }
        for node in 0..self.nodes {
            let mut shared: Vec<u32> = by_master[node].clone();
            shared.retain(|vertex| cut.is_replicated(*vertex));
            shared.sort_by_key(|vertex| cut.nodes_of(*vertex));
            for (place, vertex) in (0..).zip(&shared) {
                let number = own[*vertex as usize];
                if node == me {
                    self.shared.push(number);
                }
                for reader in (0..self.nodes).filter(|it| cut.is_at(*vertex, *it)) {
                    self.note(Column::Data, (node, reader), place, number);
                }
            }
            self.words[node][Column::Data as usize] = shared.len();
            self.mastered[node] = by_master[node].len();
            let mut place = 0;
            for owner in (0..self.nodes).filter(|owner| *owner != node) {
                for vertex in by_master[owner].iter().filter(|it| cut.sums_at(**it, node)) {
                    let number = own[*vertex as usize];
                    if node == me {
                        self.summed.push(number);
                    }
                    self.note(Column::Sums, (node, owner), place, number);
                    place += 1;
                }
            }
            self.words[node][Column::Sums as usize] = place as usize;
        }
    }

    /// One node reads a place of another one's column, of the vertex that has this number here.
    fn note(&mut self, column: Column, (writer, reader): (usize, usize), place: u32, own: u32) {
        if writer == reader {
            return;
        }
        let nth = column as usize;
        self.traffic[nth][writer][reader] += 1;
        if writer == self.me {
            self.wanted[nth][reader].push(place);
        }
        if reader == self.me {
            self.wants[nth][writer].push(place, own);
        }
    }

    pub fn wants(&self, column: Column, from: usize) -> &Wants {
        &self.wants[column as usize][from]
    }

    pub fn wanted(&self, column: Column, to: usize) -> &[u32] {
        &self.wanted[column as usize][to]
    }

    pub fn words_of(&self, column: Column, node: usize) -> usize {
        self.words[node][column as usize]
    }

    pub fn traffic(&self, column: Column, from: usize, to: usize) -> usize {
        self.traffic[column as usize][from][to]
    }

    /// The other nodes.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me;
        (0..self.nodes).filter(move |node| *node != me)
    }
}

impl Wants {
    fn push(&mut self, place: u32, own: u32) {
        self.places.push(place);
        self.own.push(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CutBy, rmat};

    #[test]
    fn what_one_node_wants_of_another_is_what_that_has_for_it() {
        let graph = rmat(7, 5).unwrap();
        for by in [CutBy::Random, CutBy::Greedy] {
            let cut = Cut::new(&graph, 4, by).unwrap();
            let (graph, cut) = (&graph, &cut);
            let parts: Vec<Part> = (0..4).map(|me| Part::of(Plan { graph, cut }, me)).collect();
            for (reader, writer) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
                for column in Column::ALL.into_iter().filter(|_| reader != writer) {
                    let (reads, has) = (&parts[reader], &parts[writer]);
                    let wants = reads.wants(column, writer);
                    assert_eq!(wants.places, has.wanted(column, reader));
                    assert!(wants.places.is_sorted());
                    for (place, own) in wants.places.iter().zip(&wants.own) {
                        let there = match column {
                            Column::Data => has.shared[*place as usize],
                            Column::Sums => has.summed[*place as usize],
                        };
                        let vertex = reads.vertices[*own as usize];
                        assert_eq!(vertex, has.vertices[there as usize]);
                        assert!((*place as usize) < reads.words_of(column, writer));
                    }
                }
            }
        }
    }
}
