//! Rules that can be broken on purpose, to see that checkers notice.

/// The enum `Defect` of a module: its rules, each with what happens when it is broken.
macro_rules! defects {
    ($what:literal: $($(#[$text:meta])* $name:ident,)*) => {
        #[doc = $what]
        /// In a host that ships none is.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Defect { $($(#[$text])* $name,)* }

        impl Defect {
            /// All of them.
            pub const ALL: &'static [Defect] = &[$(Defect::$name,)*];
        }
    };
}
