//! From packages to a graph.

use std::collections::HashMap;

use super::control::Package;
use super::version;
use crate::pagerank::Adjacency;

/// Packages by name and what each needs, as compressed rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    names: Vec<String>,
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
    /// The graph of packages. Of several versions of a package the newest counts. Needs that no
    /// package meets are left out, and so is what a package needs of itself.
    pub fn build(packages: Vec<Package>) -> Graph {
        let packages = newest(packages);
        let numbers: HashMap<&str, u32> = (0..)
            .zip(&packages)
            .map(|(number, package)| (package.name.as_str(), number))
            .collect();
        let providers = providers(&packages);
        let find = |name: &String| {
            let real = numbers.get(name.as_str());
            real.or_else(|| providers.get(name.as_str())).copied()
        };
        let (mut offsets, mut targets) = (vec![0], Vec::new());
        for (own, package) in (0..).zip(&packages) {
            let chosen = package
                .needs
                .iter()
                .filter_map(|group| group.iter().find_map(find));
            let mut row: Vec<u32> = chosen.filter(|&target| target != own).collect();
            row.sort_unstable();
            row.dedup();
            targets.extend(row);
            // A list of 2^20 packages in lines of 1 MiB could name more: the rest is dropped.
            targets.truncate(u32::MAX as usize);
            offsets.push(targets.len() as u32);
        }
        let names = packages.into_iter().map(|package| package.name);
        Graph {
            names: names.collect(),
            offsets,
            targets,
        }
    }

    /// How many packages there are.
    pub fn nodes(&self) -> usize {
        self.names.len()
    }

    /// How many needs there are.
    pub fn edges(&self) -> usize {
        self.targets.len()
    }

    /// The names, in order: a package's number is its place here.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of a package.
    pub fn find(&self, name: &str) -> Option<u32> {
        let found = self
            .names
            .binary_search_by(|other| other.as_str().cmp(name));
        found.ok().map(|place| place as u32)
    }

    /// What a package needs, in ascending order.
    pub fn successors(&self, node: usize) -> &[u32] {
        self.adjacency().successors(node)
    }

    /// The rows: where each package's needs begin, and all needs.
    pub fn adjacency(&self) -> Adjacency<'_> {
        Adjacency {
            offsets: &self.offsets,
            targets: &self.targets,
        }
    }
}

/// One of each name, by name.
fn newest(mut packages: Vec<Package>) -> Vec<Package> {
    packages.sort_by(|a, b| {
        let newest_first = || version::compare(&b.version, &a.version);
        a.name.cmp(&b.name).then_with(newest_first)
    });
    packages.dedup_by(|later, kept| later.name == kept.name);
    packages
}

/// For each virtual package the first that provides it.
fn providers(packages: &[Package]) -> HashMap<&str, u32> {
    let mut providers = HashMap::new();
    for (number, package) in (0..).zip(packages) {
        for name in &package.provides {
            providers.entry(name.as_str()).or_insert(number);
        }
    }
    providers
}

#[cfg(test)]
mod tests {
    use super::super::control::read;
    use super::*;

    fn graph(text: &str) -> Graph {
        Graph::build(read(text.as_bytes()).unwrap())
    }

    fn needs(graph: &Graph, name: &str) -> Vec<String> {
        let node = graph.find(name).unwrap() as usize;
        let name = |&target: &u32| graph.names()[target as usize].clone();
        graph.successors(node).iter().map(name).collect()
    }

    #[test]
    fn needs_lead_to_what_meets_them() {
        let graph = graph(
            "Package: z\nDepends: missing | b | a, virtual, a, a, z, gone\n\n\
             Package: b\nProvides: virtual\n\n\
             Package: a\nProvides: virtual, b\nDepends: b\n",
        );
        assert_eq!(graph.names(), ["a", "b", "z"]);
        assert_eq!(needs(&graph, "z"), ["a", "b"]);
        assert_eq!(needs(&graph, "a"), ["b"]);
        assert!(needs(&graph, "b").is_empty());
        assert_eq!((graph.nodes(), graph.edges()), (3, 3));
        assert_eq!(graph.find("virtual"), None);
    }

    #[test]
    fn the_newest_version_counts() {
        let graph = graph(
            "Package: a\nVersion: 1.9\nDepends: old\n\nPackage: a\nVersion: 1.10\nDepends: new\n\n\
             Package: a\nVersion: 1.2\nDepends: old\n\nPackage: old\n\nPackage: new\n",
        );
        assert_eq!(needs(&graph, "a"), ["new"]);
    }

    #[test]
    fn no_packages_are_an_empty_graph() {
        let graph = graph("");
        assert_eq!((graph.nodes(), graph.edges()), (0, 0));
        assert_eq!(graph.adjacency().nodes(), 0);
    }
}
