//! Where the bytes of memory are.

/// See the module. A chunk has one, and a region asks for one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Backing {
    /// Memory of the home's process.
    #[default]
    Heap = 0,
    /// A file that other processes of the host map.
    SharedFile = 1,
    /// A map of the kernel, which programs in it can read.
    KernelMap = 2,
    /// A file that outlives the process and the machine's power.
    DurableFile = 3,
}

impl Backing {
    /// Every backing there is.
    pub const ALL: [Backing; 4] = [
        Backing::Heap,
        Backing::SharedFile,
        Backing::KernelMap,
        Backing::DurableFile,
    ];

    /// From its number.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|backing| *backing as u8 == byte)
    }

    /// Its name in messages and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Backing::Heap => "heap",
            Backing::SharedFile => "shared file",
            Backing::KernelMap => "kernel map",
            Backing::DurableFile => "durable file",
        }
    }
}

impl core::fmt::Display for Backing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
