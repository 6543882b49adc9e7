//! The program does what the home that ships does: golden packets, random ones, forged frames, and
//! differences that are planted.

use super::{BASE, HOME, Home, SLABS, own, request, served, tag};
use crate::support::{AGENT, at, frame, planted};
use rackmem_conformance::reads::{
    Became, Event, Put, ReadHome, ReadsCase, ReadsImplementation, content, replay, scenarios,
    sequence,
};
use rackmem_xdp::Verdict;
use rackmem_xdp::carrier::{CARRIER_LEN, Frame};
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Where classes of slabs are said, in words.
const CLASSES_AT: usize = 512;

/// What became of a frame: an answer to the reader, with its payload, or none.
fn became(home: &Home, frame: &[u8]) -> Result<Became, String> {
    let ran = home
        .reads
        .run(frame, 1)
        .map_err(|error| error.to_string())?;
    match ran.verdict {
        Verdict::Pass if ran.frame == frame => Ok(Became::Agents),
        Verdict::Pass => Err("it passes another frame than what came".into()),
        Verdict::Redirect => {
            let lengths = ran.frame.get(16..18).ok_or("no datagram")?;
            let end = 14 + usize::from(u16::from_be_bytes([lengths[0], lengths[1]]));
            let answer = ran.frame.get(..end).ok_or("longer than its frame")?;
            let answer = Frame::parse(answer)?;
            let (to, from) = (frame[26..30] == answer.to.ip().octets(), answer.from);
            let back = [&frame[6..12], &frame[..6]] == answer.macs.each_ref().map(|mac| &mac[..]);
            match to && from == at(AGENT) && back {
                true => Ok(Became::Answer(answer.payload)),
                false => Err(format!("it answers from {from} to {}", answer.to)),
            }
        }
        other => Err(format!("it said {other:?}")),
    }
}

impl Home {
    fn put_words(&self, put: &Put) {
        let words = self.words(put.slab as usize, put.within as usize);
        words[1].store(put.meta.to_word(), Relaxed);
        let bytes = content(put.meta.len, put.seed);
        for (nth, eight) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            words[2 + nth].store(u64::from_ne_bytes(word), Relaxed);
        }
        words[0].store(put.version, Release);
    }
}

impl ReadsImplementation for Home {
    fn begin(&mut self, home: &ReadHome) -> Result<(), String> {
        if (home.node, home.base) != (HOME, BASE) || home.classes.len() != SLABS as usize {
            return Err("all cases have one home".into());
        }
        for word in self.lent.words() {
            word.store(0, Relaxed);
        }
        for (slab, class) in home.classes.iter().enumerate() {
            self.lent.words()[CLASSES_AT + slab].store((*class).into(), Relaxed);
        }
        self.serve(0)
    }

    fn serve(&mut self, epoch: u32) -> Result<(), String> {
        let done = match epoch {
            0 => self.reads.stop(),
            epoch => self.reads.serve(&served(epoch)),
        };
        done.map_err(|error| error.to_string())
    }

    fn put(&mut self, put: &Put) -> Result<(), String> {
        self.put_words(put);
        Ok(())
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Became, String> {
        became(self, &frame(bytes))
    }
}

fn answers(case: &ReadsCase) -> usize {
    let answered = |event: &&Event| matches!(event, Event::Packet(_, Became::Answer(_)));
    case.events.iter().filter(answered).count()
}

#[test]
fn golden_packets() {
    let Some(mut home) = Home::new("golden packets of reads in the kernel", None) else {
        return;
    };
    let cases = scenarios::all();
    assert!(cases.len() > 10, "{}", cases.len());
    for case in &cases {
        replay(&mut home, case).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

/// Addresses, generations, offsets, lengths, versions, room, epochs and bytes of any value, beside
/// a home that writes.
#[test]
fn random_reads() {
    let Some(mut home) = Home::new("random reads in the kernel", None) else {
        return;
    };
    for seed in 0..8 {
        let case = sequence(seed, 4000);
        assert!(answers(&case) > 400, "{}", answers(&case));
        replay(&mut home, &case).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

#[test]
fn a_planted_difference_shows_in_golden_packets() {
    // Of 1 only a writer beside tells, and of 6 a header that contradicts its slab.
    for number in 2..=5 {
        let object = planted(number);
        let Some(mut home) = Home::new("planted differences of reads", Some(&object)) else {
            return;
        };
        let cases = scenarios::all();
        let found = cases.iter().find_map(|case| replay(&mut home, case).err());
        assert!(found.is_some(), "plant {number} is not found");
    }
}

/// Any byte of the headers around a packet, and frames that are cut: the program answers whoever
/// asked, from the home, or leaves the frame as it came.
#[test]
fn forged_frames_are_the_agents() {
    let Some(home) = Home::new("forged frames for objects in the kernel", None) else {
        return;
    };
    home.make(0, 0, 8, 4, &[5; 200]);
    let good = frame(&request(tag(0, 0), own(0, 4, 0)));
    let answer = became(&home, &good).expect("an answer");
    assert!(matches!(answer, Became::Answer(_)));
    for at in 0..CARRIER_LEN {
        // Ethernet's addresses, what routers and senders fill in, and the reader's own port.
        let open = matches!(at, 0..=11 | 15 | 18..=19 | 22 | 24..=29 | 34..=35 | 40..=41);
        for value in 0..=255u8 {
            let mut forged = good.clone();
            forged[at] = value;
            // Two bits of these say nothing of pieces.
            let same = match at {
                20 => forged[at] & 0x3f == 0,
                _ => value == good[at],
            };
            let found = became(&home, &forged).unwrap_or_else(|why| panic!("{at}={value}: {why}"));
            match open || same {
                true => assert_eq!(found, answer, "byte {at} = {value}"),
                false => assert_eq!(found, Became::Agents, "byte {at} = {value}"),
            }
        }
    }
    for len in 14..good.len() {
        let found = became(&home, &good[..len]);
        assert_eq!(found, Ok(Became::Agents), "{len} bytes");
    }
    // Behind a datagram there may be padding.
    let padded = [&good[..], &[0xee; 18]].concat();
    assert_eq!(became(&home, &padded), Ok(answer));
}

/// No packet makes such a header. Were one there, nothing of the object behind it would be read.
#[test]
fn a_header_that_contradicts_its_slab_is_the_agents() {
    let ask = |home: &Home| {
        home.make(0, 0, 8, 4, &[5; 40]);
        // The next object has to be nobody's business.
        let words = home.words(0, 0);
        words[1].store(words[1].load(Relaxed) & !0xffff | 1000, Relaxed);
        became(home, &frame(&request(tag(0, 0), own(0, 4, 0))))
    };
    let Some(home) = Home::new("contradicting headers in the kernel", None) else {
        return;
    };
    assert_eq!(ask(&home), Ok(Became::Agents));
    assert_eq!(home.counts().long, 1);
    let object = planted(6);
    let home = Home::new("a planted difference", Some(&object)).expect("as before");
    assert!(matches!(ask(&home), Ok(Became::Answer(_))));
}
