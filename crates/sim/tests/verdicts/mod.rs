//! What a group of explored scenarios comes to, the gravest first: a broken promise is what there
//! is to mend, and a scenario that has grown or shrunk, or shows nothing any more,
//! is often only its trace.

use std::fmt::Debug;

/// What came of the scenarios so far.
#[derive(Default)]
pub struct Verdicts {
    broken: Vec<String>,
    cut_short: Vec<String>,
    blind: Vec<String>,
    resized: Vec<String>,
}

/// What came of one.
pub struct Explored<Size> {
    pub name: &'static str,
    /// The broken promise with its story.
    pub broken: Option<String>,
    /// Every state was visited.
    pub whole: bool,
    /// What should have been seen and was not.
    pub missing: String,
    /// How large the catalogue says that it is, and how large it is.
    pub sizes: (Size, Size),
}

impl Verdicts {
    /// Takes one more.
    pub fn add<Size: PartialEq + Debug>(&mut self, explored: Explored<Size>) {
        let Explored {
            name,
            broken,
            whole,
            missing,
            sizes: (known, found),
        } = explored;
        match broken {
            Some(story) => self.broken.push(format!("{name}: {story}")),
            None if !whole => self.cut_short.push(name.to_owned()),
            None => {
                if !missing.is_empty() {
                    self.blind.push(format!("{name} never shows {missing}"));
                }
                if known != found {
                    self.resized
                        .push(format!("{name}: {found:?} and not {known:?}"));
                }
            }
        }
    }

    /// What is wrong, if anything is.
    pub fn complaint(&self) -> Option<String> {
        let parts = [
            ("broken promises", &self.broken),
            ("more states than an exploration visits", &self.cut_short),
            ("scenarios that show nothing", &self.blind),
            ("sizes that the catalogue does not know", &self.resized),
        ];
        let parts = parts.into_iter().filter(|(_, rows)| !rows.is_empty());
        let parts: Vec<String> = parts
            .map(|(what, rows)| format!("{what}:\n{}", rows.join("\n")))
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}
