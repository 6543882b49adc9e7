//! What another node does while a node's unlock is being sent: a rack whose agents and switch run
//! it at that moment, in the same thread, so that every run has the same order.

use crate::coherent::shared::Shared;
use crate::config::{Mode, Settings};
use crate::node::Node;
use crate::ports::requester::DEFECT;
use crate::rack::Rack;
use rackmem_fabric::{Body, Handler, Net, Receiver};
use rackmem_proto::engine::Defect;
use rackmem_proto::wire::{Header, Kind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Act = Box<dyn FnOnce() + Send>;
type Waiting = Arc<Mutex<Option<Act>>>;

/// An end that lets another node act once it has taken an unlock of node 0,
/// before the unlock's sender goes on.
struct Meddling {
    inner: Arc<dyn Handler>,
    act: Waiting,
}

impl Handler for Meddling {
    fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.inner.handle(net, header, body, reply);
        if header.kind == Kind::Unlock && header.requester.node == 0 {
            let act = self.act.lock().unwrap().take();
            act.into_iter().for_each(|act| act());
        }
    }

    fn tick(&self, net: &dyn Net) {
        self.inner.tick(net);
    }
}

/// Two nodes and a word that both know; what is put into `act` happens when node 0 next unlocks.
struct Scene {
    /// Ends the rack when the scene is over.
    _rack: Rack,
    act: Waiting,
    here: Shared<u64>,
    there: Shared<u64>,
}

fn scene(mode: Mode) -> Scene {
    let settings = Settings {
        mode,
        // A defect makes requests fail: not for long.
        patience: Duration::from_millis(200),
        ..Settings::default()
    };
    let act = Waiting::default();
    let before = |inner: Arc<dyn Handler>| -> Arc<dyn Handler> {
        let act = act.clone();
        Arc::new(Meddling { inner, act })
    };
    let rack = Rack::inline_between(2, &settings, before).unwrap();
    let nodes: [Node; 2] = [rack.node(0), rack.node(1)];
    let there: Shared<u64> = nodes[1].alloc(0).unwrap();
    let here = nodes[0].attach(there.addr()).unwrap();
    // Attaching has looked at the block: node 0 begins without a copy.
    there.write(1).unwrap();
    Scene {
        _rack: rack,
        act,
        here,
        there,
    }
}

impl Scene {
    /// Node 1 does this while node 0's next unlock is being sent.
    fn meanwhile(&self, act: impl FnOnce(Shared<u64>) + Send + 'static) {
        let there = self.there.clone();
        *self.act.lock().unwrap() = Some(Box::new(move || act(there)));
    }

    /// Whether it has happened.
    fn happened(&self) -> bool {
        self.act.lock().unwrap().is_none()
    }
}

const MODES: [Mode; 2] = [Mode::Switch, Mode::HomeOnly];

/// Node 0 reads 1, and while its unlock is being sent node 1 writes 2:
/// what node 0 reads afterwards.
fn read_after_a_write_meanwhile(mode: Mode) -> Option<u64> {
    let scene = scene(mode);
    scene.meanwhile(|there| there.write(2).unwrap());
    assert_eq!(scene.here.read().ok(), Some(1));
    assert!(scene.happened());
    scene.here.read().ok()
}

#[test]
fn a_copy_is_there_before_another_node_can_take_it_away() {
    for mode in MODES {
        assert_eq!(read_after_a_write_meanwhile(mode), Some(2), "{mode:?}");
    }
}

/// Node 0 writes 5, and while its unlock is being sent node 1 adds 1: what node 1 has got,
/// and what is there in the end.
fn add_after_a_write(mode: Mode) -> (Option<u64>, Option<u64>) {
    let scene = scene(mode);
    let added = Arc::new(Mutex::new(None));
    let told = added.clone();
    scene.meanwhile(move |there| *told.lock().unwrap() = there.fetch_add(1).ok());
    scene.here.write(5).unwrap();
    assert!(scene.happened());
    let added = *added.lock().unwrap();
    (added, scene.here.read().ok())
}

#[test]
fn an_owner_has_the_block_before_another_node_can_ask_for_it() {
    for mode in MODES {
        assert_eq!(add_after_a_write(mode), (Some(5), Some(6)), "{mode:?}");
    }
}

#[test]
fn an_upgraded_copy_is_writable_before_another_node_can_ask_for_it() {
    for mode in MODES {
        let scene = scene(mode);
        assert_eq!(scene.here.read().ok(), Some(1));
        scene.meanwhile(|there| assert_eq!(there.fetch_add(1).ok(), Some(7)));
        scene.here.write(7).unwrap();
        assert!(scene.happened());
        assert_eq!(scene.here.read().ok(), Some(8), "{mode:?}");
    }
}

#[test]
fn an_unlock_before_the_bytes_are_in_place_is_noticed() {
    for mode in MODES {
        DEFECT.set(Some(Defect::UnlockFirst));
        let read = read_after_a_write_meanwhile(mode);
        let added = add_after_a_write(mode);
        DEFECT.set(None);
        assert_ne!(read, Some(2), "{mode:?}");
        assert_ne!(added, (Some(5), Some(6)), "{mode:?}");
    }
}
