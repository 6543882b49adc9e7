//! The program alone: no network, no socket.

use super::{Options, Result, missing};
use crate::report::Report;
use crate::timing::median_for;
use rackmem_proto::switch::{SwitchConfig, SwitchProgram};
use rackmem_proto::wire::{
    Copyset, Flags, GlobalStatus, Header, Kind, RequesterId, Seq, Tag, encode,
};
use rackmem_xdp::{Bare, BareProgram, Switch, to_switch};
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 254), 7400);
const FROM: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 40_000);
const EPOCH: u32 = 1;
/// Blocks that the switch owns, in as many sets.
const BLOCKS: u64 = 512;

fn header(kind: Kind, block: u64, seq: u64) -> Header {
    let requester = RequesterId { node: 0, slot: 0 };
    Header {
        reply_port: 40_000,
        ..Header::request(kind, EPOCH, Tag(1 << 48 | block << 12), requester, Seq(seq))
    }
}

/// Packets that make the switch own the blocks, as shared by two others: one slot moves them all,
/// one after the other.
fn adding() -> impl Iterator<Item = Header> {
    (0..BLOCKS).map(|block| Header {
        status: GlobalStatus::Shared,
        copyset: Copyset(0b110),
        ..header(Kind::AddToSwitch, block, block + 1)
    })
}

/// Events one after the other: a request, and the unlock that ends it.
struct Stream(&'static str, Kind, Flags);

const STREAMS: [Stream; 2] = [
    Stream("lock_and_unlock", Kind::LockWrite, Flags::KEEP),
    Stream("write_miss_to_two_and_unlock", Kind::WriteMiss, Flags::KEEP),
];

impl Stream {
    fn packets(&self, count: u32, from: u64) -> impl Iterator<Item = Header> {
        let Stream(_, kind, flags) = *self;
        (0..count).map(move |at| {
            let seq = from + u64::from(at / 2);
            let block = seq % BLOCKS;
            if at % 2 == 0 {
                return header(kind, block, seq);
            }
            Header {
                flags: flags.and(Flags::IN_SWITCH),
                ..header(Kind::Unlock, block, seq)
            }
        })
    }
}

pub fn run(report: &mut Report, options: &Options) -> Result<()> {
    let config = SwitchConfig {
        epoch: EPOCH,
        ..SwitchConfig::default()
    };
    let mut rust = SwitchProgram::new(config);
    for add in adding() {
        rust.handle(&add);
    }
    let mut kernel = Switch::load(config).map_err(missing)?;
    let agent = |host| SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, host), 7401);
    let agents: Vec<_> = (0..3).map(|node| (agent(1 + node), node.into())).collect();
    kernel.pretend_ports(SWITCH, &agents).map_err(missing)?;
    for add in adding() {
        kernel
            .run(&to_switch(SWITCH, FROM, &encode(&add, 0)), 1)
            .map_err(missing)?;
    }
    let empty = Bare::load(BareProgram::Pass, SWITCH).map_err(missing)?;
    let mut seq = 1;
    for stream in &STREAMS {
        let name = stream.0;
        let mut again = || {
            seq += u64::from(options.packets);
            stream.packets(options.packets, seq).collect::<Vec<_>>()
        };
        let in_rust = median_for(options.duration, || {
            let packets = again();
            let began = Instant::now();
            packets.iter().for_each(|packet| {
                black_box(rust.handle(black_box(packet)));
            });
            began.elapsed().as_nanos() as f64 / f64::from(options.packets)
        });
        report.add(&format!("program/{name}/rust"), in_rust.value, "ns")?;
        // The kernel's clock is read around each packet: what the empty program takes is the
        // clock's, and the call's.
        let frames = |packets: Vec<Header>| {
            packets
                .into_iter()
                .map(|packet| to_switch(SWITCH, FROM, &encode(&packet, 0)))
                .collect::<Vec<_>>()
        };
        let mut failed = None;
        let mut p50 = |run: &dyn Fn(&[u8]) -> rackmem_xdp::Result<rackmem_xdp::Ran>,
                       frames: Vec<Vec<u8>>| {
            let mut times: Vec<u64> = Vec::with_capacity(frames.len());
            for frame in &frames {
                match run(frame) {
                    Ok(ran) => times.push(ran.time.as_nanos() as u64),
                    Err(error) => failed = Some(error),
                }
            }
            times.sort_unstable();
            times.get(times.len() / 2).map_or(0.0, |&time| time as f64)
        };
        let nothing = median_for(options.duration, || {
            p50(&|frame| empty.run(frame, 1), frames(again()))
        });
        let whole = median_for(options.duration, || {
            p50(&|frame| kernel.run(frame, 1), frames(again()))
        });
        if let Some(error) = failed {
            return Err(missing(error));
        }
        let empty_case = format!("program/{name}/xdp-empty");
        report.add(&empty_case, nothing.value, "ns")?;
        report.add_against(
            &format!("program/{name}/xdp"),
            whole.value,
            "ns",
            &empty_case,
        )?;
        let own = whole.value - nothing.value;
        report.add(&format!("program/{name}/xdp-without-the-call"), own, "ns")?;
        report.add(
            &format!("program/{name}/rust-rate"),
            1e9 / in_rust.value.max(0.1),
            "packets/s",
        )?;
        report.add(
            &format!("program/{name}/xdp-rate"),
            1e9 / own.max(0.1),
            "packets/s",
        )?;
    }
    Ok(())
}
