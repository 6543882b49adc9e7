//! A terminal that shows one frame after another, and is left as it was found.

use crate::failure::{Failure, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, LocalFlags, SetArg, SpecialCharacterIndices, Termios};
use std::io::{IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, Once};
use std::time::Duration;

/// The other screen of the terminal, without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// What Ctrl-C sends where it raises no signal.
pub const CTRL_C: u8 = 3;

/// The terminal of standard input and output, until it is dropped.
pub struct Screen {
    before: Termios,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When there is none.
    pub fn open() -> Result<Screen> {
        let none = || {
            Failure::new(
                "standard input or output is no terminal",
                "add --once for one frame as text, or --json for samples",
            )
        };
        let input = std::io::stdin();
        if !input.is_terminal() || !std::io::stdout().is_terminal() {
            return Err(none());
        }
        let before = termios::tcgetattr(&input).map_err(|_| none())?;
        let mut raw = before.clone();
        // Keys come at once, unseen. Output goes on as before, and so do messages of a panic.
        let off = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG | LocalFlags::IEXTEN;
        raw.local_flags.remove(off);
        raw.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        raw.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        termios::tcsetattr(&input, SetArg::TCSANOW, &raw).map_err(|_| none())?;
        let screen = Screen { before };
        screen.restore_on_panic();
        say(ENTER);
        Ok(screen)
    }

    /// A panic is told on the screen that stays.
    fn restore_on_panic(&self) {
        static HOOK: Once = Once::new();
        let before = Mutex::new(self.before.clone());
        HOOK.call_once(|| {
            let told = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if let Ok(before) = before.lock() {
                    restore(&before);
                }
                told(panic);
            }));
        });
    }

    /// Shows a frame: as much of it as the window has room for.
    pub fn show(&self, lines: &[String]) {
        let (width, height) = size();
        let mut text = String::from("\x1b[H");
        for (at, line) in lines.iter().take(height).enumerate() {
            if at > 0 {
                text.push_str("\r\n");
            }
            text.extend(line.chars().take(width));
            text.push_str("\x1b[K");
        }
        text.push_str("\x1b[J");
        say(&text);
    }

    /// The keys that were pressed within a time, or none.
    pub fn keys(&self, within: Duration) -> Vec<u8> {
        let mut input = std::io::stdin();
        let timeout = PollTimeout::try_from(within).unwrap_or(PollTimeout::ZERO);
        let mut polled = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, timeout).unwrap_or(0) == 0 {
            return Vec::new();
        }
        let mut keys = [0; 64];
        match input.read(&mut keys) {
            Ok(count) if count > 0 => keys[..count].to_vec(),
            // The terminal has gone.
            _ => vec![CTRL_C],
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

/// The window's columns and lines.
pub fn size() -> (usize, usize) {
    let (lines, columns) = console::Term::stdout().size();
    (columns.into(), lines.into())
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // A terminal that has gone is noticed at its keys.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn restore(before: &Termios) {
    say(LEAVE);
    // Nothing else can be done for a terminal that refuses.
    let _ = termios::tcsetattr(std::io::stdin(), SetArg::TCSANOW, before);
}
