//! A node's own work on its part: no other node is needed for it.

use crate::part::{Column, Part, Wants};
use crate::program::{Program, Word};

/// If more than one vertex in so many has changed, all are gathered for: that is faster than to
/// look for those that need it.
const FEW: usize = 4;

/// What a node has of the computation.
pub(crate) struct Local<'a, P: Program> {
    program: &'a P,
    part: &'a Part,
    /// Of masters, and of replicas as they were read last.
    pub values: Vec<P::Value>,
    /// What each vertex gives along its edges.
    given: Vec<P::Value>,
    /// Over the edges here.
    sums: Vec<P::Value>,
    /// Of masters, over the edges of all nodes.
    totals: Vec<P::Value>,
    /// Vertices that have changed since the last gathering.
    changed: Vec<u32>,
    is_active: Vec<bool>,
    active: Vec<u32>,
    is_first: bool,
}

/// What a node tells the others of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Applied {
    pub leak: f64,
    pub change: f64,
    pub changed: u64,
}

impl<'a, P: Program> Local<'a, P> {
    pub fn new(program: &'a P, part: &'a Part) -> Self {
        let values: Vec<P::Value> = part.vertices.iter().map(|it| program.start(*it)).collect();
        let nothing = vec![program.nothing(); values.len()];
        Local {
            program,
            part,
            given: nothing.clone(),
            totals: nothing[..part.masters].to_vec(),
            sums: nothing,
            changed: Vec::new(),
            is_active: vec![false; values.len()],
            active: Vec::new(),
            is_first: true,
            values,
        }
    }

    /// What masters give to all vertices before the first step.
    pub fn leak(&self) -> f64 {
        let masters = self.values[..self.part.masters].iter();
        let leaks = masters
            .zip(&self.part.out_degrees)
            .map(|(value, degree)| self.program.leak(*value, *degree));
        leaks.fold(0.0, |sum, leak| sum + leak)
    }

    /// The data of masters that have replicas, as a column.
    pub fn data(&self, words: &mut Vec<u64>) {
        words.clear();
        let shared = self.part.shared.iter();
        words.extend(shared.map(|vertex| self.values[*vertex as usize].to_word()));
    }

    /// The data of all masters.
    pub fn results(&self, words: &mut Vec<u64>) {
        words.clear();
        let masters = &self.values[..self.part.masters];
        words.extend(masters.iter().map(|value| value.to_word()));
    }

    /// The data of replicas that have one master.
    pub fn mirror(&mut self, wants: &Wants, words: &[u64]) {
        for (vertex, word) in wants.own.iter().zip(words) {
            let value = &mut self.values[*vertex as usize];
            if value.to_word() != *word {
                *value = P::Value::of_word(*word);
                self.changed.push(*vertex);
            }
        }
    }

    /// Scatter and gather: sums over the edges here of what their sources give, where any of these
    /// has changed. The others' sums stay.
    pub fn gather(&mut self) {
        let all = self.is_first || self.changed.len() * FEW > self.values.len();
        if all {
            (0..self.values.len()).for_each(|vertex| self.offer(vertex));
            for vertex in 0..self.values.len() as u32 {
                self.sum(vertex);
            }
        } else {
            self.activate();
            for vertex in std::mem::take(&mut self.active) {
                self.is_active[vertex as usize] = false;
                self.sum(vertex);
            }
        }
        self.changed.clear();
        self.is_first = false;
    }

    fn offer(&mut self, vertex: usize) {
        let degree = self.part.out_degrees[vertex];
        self.given[vertex] = self.program.give(self.values[vertex], degree);
    }

    fn activate(&mut self) {
        for vertex in std::mem::take(&mut self.changed) {
            self.offer(vertex as usize);
            for (target, _) in self.part.out.of(vertex) {
                if !std::mem::replace(&mut self.is_active[*target as usize], true) {
                    self.active.push(*target);
                }
            }
        }
    }

    fn sum(&mut self, vertex: u32) {
        let (program, given) = (self.program, &self.given);
        let edges = self.part.into.of(vertex).iter();
        let arrive = edges.map(|(source, weight)| program.along(given[*source as usize], *weight));
        self.sums[vertex as usize] = arrive.fold(program.nothing(), |a, b| program.sum(a, b));
    }

    /// The sums of replicas, as a column.
    pub fn sums(&self, words: &mut Vec<u64>) {
        words.clear();
        let summed = self.part.summed.iter();
        words.extend(summed.map(|vertex| self.sums[*vertex as usize].to_word()));
    }

    /// Sums of masters begin.
    pub fn begin_totals(&mut self) {
        self.totals.fill(self.program.nothing());
    }

    /// What another node has summed for masters here.
    pub fn add(&mut self, wants: &Wants, words: &[u64]) {
        for (master, word) in wants.own.iter().zip(words) {
            let total = &mut self.totals[*master as usize];
            *total = self.program.sum(*total, P::Value::of_word(*word));
        }
    }

    /// What was summed here for masters here.
    pub fn add_own(&mut self) {
        for (vertex, total) in (0..).zip(&mut self.totals) {
            if !self.part.into.of(vertex).is_empty() {
                *total = self.program.sum(*total, self.sums[vertex as usize]);
            }
        }
    }

    /// The new data of masters.
    pub fn apply(&mut self, everywhere: f64) -> Applied {
        let mut applied = Applied::default();
        let program = self.program;
        for (vertex, total) in (0..).zip(&self.totals) {
            let own = self.values[vertex as usize];
            let new = program.apply(own, *total, everywhere);
            applied.change += program.change(own, new);
            applied.leak += program.leak(new, self.part.out_degrees[vertex as usize]);
            if new.to_word() != own.to_word() {
                applied.changed += 1;
                self.values[vertex as usize] = new;
                self.changed.push(vertex);
            }
        }
        applied
    }

    /// Words of a column of another node that this part wants.
    pub fn wants(&self, column: Column, from: usize) -> &'a Wants {
        self.part.wants(column, from)
    }
}
