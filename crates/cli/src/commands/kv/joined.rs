//! This process as one node of a rack of processes.

use super::leaving::{self, LeaveArgs, Next};
use super::{ServeArgs, listen};
use crate::commands::load;
use crate::commands::node::tell_kernel_reads;
use crate::ended::Ended;
use crate::failure::Result;
use crate::fence::FenceArgs;
use crate::stop::Stop;
use crate::store::{self, AtNode};
use crate::watch::{self, Over, Watch};
use crate::watching::{MetricsArgs, MetricsSocket};
use crate::wire_args::WireArgs;
use rackmem::membership::Role;
use rackmem::{Config, Fabric, Rack};
use rackmem_kv::{Server, Store};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// Which node, and where its clients connect.
pub struct Place<'a> {
    pub file: &'a Path,
    pub number: usize,
    pub addr: SocketAddr,
    pub fence: FenceArgs,
    /// How long it tries to move its keys before it ends.
    pub leave: LeaveArgs,
    /// The interface at which the kernel answers reads of its objects.
    pub kernel_reads: Option<&'a str>,
    /// Whether it invalidates copies of its cache there, too.
    pub kernel_cache: bool,
    pub metrics: &'a MetricsArgs,
}

pub fn run(place: &Place<'_>, serve: &ServeArgs, wires: &WireArgs, json: bool) -> Result<Ended> {
    let &Place { number, fence, .. } = place;
    let mut config = load(place.file)?;
    wires.apply(&mut config);
    if let Some(copies) = serve.copies {
        config.set_kv_copies(copies)?;
    }
    if let Some(durability) = serve.durability {
        config.set_kv_durability(durability)?;
    }
    if let Some(interface) = place.kernel_reads {
        config.set_kernel_reads(interface)?;
    }
    if place.kernel_cache {
        config.set_kernel_cache()?;
    }
    // The others of the rack may take minutes to come: a wrong address is an error now.
    listen::probe(&serve.listening(place.addr))?;
    serve.snapshots.check()?;
    let socket = place.metrics.bind()?;
    let stop = Stop::on_signals()?;
    let Some(rack) = fence.join(&stop, || Rack::join(&config, number))? else {
        return Ok(Ended::Interrupted);
    };
    tell_kernel_reads(&rack, &config, json);
    let node = rack.try_node(number)?;
    let here = Here {
        place,
        serve,
        config: &config,
        json,
    };
    match config.kv_copies() {
        None => {
            let opened = store::open_when_ready(&node, serve.buckets, &stop);
            here.go_on((rack, socket), opened, &stop)
        }
        Some(copies) => {
            let opened = store::open_copied_when_ready(&node, copies, serve.buckets, &stop);
            here.go_on((rack, socket), opened, &stop)
        }
    }
}

/// What a node serves by.
struct Here<'a> {
    place: &'a Place<'a>,
    serve: &'a ServeArgs,
    config: &'a Config,
    json: bool,
}

impl Here<'_> {
    /// Serves a store that was opened, until told to stop.
    fn go_on<M: AtNode>(
        &self,
        (rack, socket): (Rack, MetricsSocket),
        opened: Result<Option<Store<M>>>,
        stop: &Stop,
    ) -> Result<Ended> {
        let Here {
            serve,
            config,
            json,
            ..
        } = *self;
        let &Place {
            number,
            addr,
            fence,
            leave,
            ..
        } = self.place;
        let role = Role::Node(number as u16);
        if opened.is_err() && rack.is_fenced() {
            return fence.go_on(role, json, &[], || drop(rack));
        }
        let Some(store) = opened? else {
            return Ok(Ended::Interrupted);
        };
        if !serve.snapshots.load(&store, stop)? {
            return Ok(Ended::Interrupted);
        }
        let servers = vec![{
            let named = config.nodes.get(number).map(SocketAddr::ip);
            // In shared memory the addresses are only names.
            let named = named.filter(|_| config.fabric != Fabric::Shm);
            let here = named.unwrap_or(Ipv4Addr::LOCALHOST.into());
            let here = config.kv_ships().then_some(here);
            let config = serve.config(&store, addr, here);
            listen::bind(store.clone(), config)?
        }];
        let (nodes, mode) = (config.nodes.len(), config.mode().name());
        let what = format!("node {number} of {nodes}, {mode} mode");
        listen::announce(&servers, &what, json);
        let watched = socket.serve(rack, json)?;
        let mut watch = Watch::new(watched.rack(), json).of_store(&store);
        let mut over = watch.wait(stop);
        let membership = &config.membership;
        let next = match over {
            Over::Stopped if membership.can_change() => {
                // Where all end at once, nobody is left who could take a key.
                watched.rack().begin_to_move();
                leaving::move_away(&store, number, leave)
            }
            _ => Next::End,
        };
        if next == Next::Stay {
            watched.rack().stay();
            watch.until_fenced();
            over = Over::Fenced;
        }
        if over == Over::Stopped && membership.can_change() && config.kv_copies().is_some() {
            // Where all end at once, what clears up in the background waits for nobody.
            watched.rack().begin_to_leave();
        }
        let rack = watched.end();
        if over == Over::Fenced {
            // Clients find it where it was.
            let addr = servers.first().map_or(addr, Server::local_addr);
            let again = ["--listen".to_owned(), addr.to_string()];
            return fence.go_on(role, json, &again, || {
                listen::shutdown(servers);
                drop(rack);
            });
        }
        listen::shutdown(servers);
        if next == Next::Finish {
            leaving::finish(&store, number, leave);
        }
        drop(store);
        watch::leave_store(rack, role, membership.can_change());
        Ok(Ended::Interrupted)
    }
}
