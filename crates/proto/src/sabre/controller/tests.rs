use super::*;

const ID: SabreId = SabreId {
    node: 1,
    pipeline: 2,
    transfer: 3,
};
const OTHER: SabreId = SabreId { transfer: 4, ..ID };

fn small(entries: usize, depth: u16) -> Controller {
    Controller::new(Design {
        entries,
        depth,
        ..Design::PAPER
    })
}

fn asked(controller: &mut Controller, id: SabreId, blocks: u16, piece: u16) {
    let mut transfer = Transfer::new(id, 100, blocks, piece);
    while let Some(request) = transfer.request() {
        controller.accept(&request).expect("there is room");
        transfer.sent();
    }
}

/// The blocks that are loaded before anything returns.
fn loads(controller: &mut Controller) -> Vec<Load> {
    let issued = core::iter::from_fn(|| controller.issue());
    let load = |action| match action {
        Action::Load(load) => load,
        other => panic!("{other:?}"),
    };
    issued.map(load).collect()
}

fn verdict(controller: &mut Controller) -> Option<Abort> {
    match controller.validate() {
        Some(Action::Reply(Reply::Verdict { failed, .. })) => failed,
        other => panic!("no verdict, but {other:?}"),
    }
}

#[test]
fn state_has_the_size_that_the_paper_gives_it() {
    let bytes = |fields: &[(&str, usize)]| {
        let bits: usize = fields.iter().map(|field| field.1).sum();
        bits.div_ceil(8)
    };
    // The base is one field of the hardware: the entry's, which its stream buffer has as well.
    assert!(
        bytes(entry::BITS) <= STATE_BYTES[0],
        "{}",
        bytes(entry::BITS)
    );
    assert!(
        bytes(stream::BITS) <= STATE_BYTES[1],
        "{}",
        bytes(stream::BITS)
    );
    assert_eq!(ENTRIES * (STATE_BYTES[0] + STATE_BYTES[1]), 560);
    const { assert!(MAX_BLOCKS < 1 << 11) };
}

#[test]
fn two_blocks_are_loaded_at_once_and_confirmed_at_once() {
    let mut controller = small(1, 32);
    asked(&mut controller, ID, 2, 2);
    let both = loads(&mut controller);
    assert_eq!(both.len(), 2);
    let second = Reply::Block {
        id: ID,
        nth: Some(1),
    };
    assert_eq!(controller.returned(&both[1], 0), Some(second));
    assert_eq!(controller.validate(), None);
    controller.returned(&both[0], 6);
    assert_eq!(verdict(&mut controller), None);
    assert_eq!(controller.active(), 0);
}

#[test]
fn figure_2s_race_is_noticed() {
    let mut controller = small(1, 32);
    asked(&mut controller, ID, 2, 2);
    let both = loads(&mut controller);
    // Block 1 is read, then written; block 0 is read when the writer has left.
    controller.returned(&both[1], 0);
    controller.invalidated(101);
    let empty = Reply::Block { id: ID, nth: None };
    assert_eq!(controller.returned(&both[0], 8), Some(empty));
    assert_eq!(verdict(&mut controller), Some(Abort::Torn));
}

#[test]
fn the_window_ends_at_the_buffer_and_at_the_page() {
    for (depth, piece, ahead) in [(3, 8, 3), (32, 5, 5), (1, 8, 1)] {
        let mut controller = small(1, depth);
        asked(&mut controller, ID, 8, piece);
        let first = loads(&mut controller);
        assert_eq!(first.len(), ahead, "depth {depth}, piece {piece}");
        controller.returned(&first[0], 2);
        assert_eq!(loads(&mut controller).len(), 8 - ahead);
    }
    let design = Design {
        speculates: false,
        ..Design::PAPER
    };
    let mut controller = Controller::new(design);
    asked(&mut controller, ID, 8, 8);
    assert_eq!(loads(&mut controller).len(), 1);
}

#[test]
fn an_evicted_base_is_read_again() {
    for (again, failed) in [(4, None), (6, Some(Abort::Torn))] {
        let mut controller = small(1, 32);
        asked(&mut controller, ID, 2, 2);
        let both = loads(&mut controller);
        controller.returned(&both[0], 4);
        controller.invalidated(100);
        // Not of its range, and not in its window.
        controller.invalidated(101);
        controller.invalidated(99);
        controller.returned(&both[1], 0);
        let Some(Action::Load(load)) = controller.validate() else {
            panic!("it is to be compared");
        };
        assert_eq!(load.access, Access::Compare);
        assert_eq!(controller.validate(), None);
        assert_eq!(controller.returned(&load, again), None);
        assert_eq!(verdict(&mut controller), failed);
    }
}

#[test]
fn a_source_waits_for_an_entry_and_others_go_on() {
    let mut controller = small(1, 32);
    asked(&mut controller, ID, 2, 2);
    let next = Transfer::new(OTHER, 200, 2, 2);
    let register = next.request().unwrap();
    assert_eq!(controller.accept(&register), Err(NotTaken::Full));
    for load in loads(&mut controller) {
        controller.returned(&load, 0);
    }
    assert_eq!(verdict(&mut controller), None);
    assert_eq!(controller.accept(&register), Ok(()));
}

#[test]
fn no_more_is_sent_than_was_asked_for_and_every_request_has_its_reply() {
    let mut controller = small(1, 32);
    let mut transfer = Transfer::new(ID, 100, 3, 3);
    for _ in 0..2 {
        controller.accept(&transfer.request().unwrap()).unwrap();
        transfer.sent();
    }
    let first = loads(&mut controller);
    assert_eq!(first.len(), 1);
    // A writer is in: what comes later is answered, and empty.
    let reply = controller.returned(&first[0], 7).unwrap();
    assert_eq!(transfer.reply(&reply), Ok(None));
    assert_eq!(transfer.reply(&reply), Err(Unasked));
    assert_eq!((controller.issue(), controller.validate()), (None, None));
    while let Some(request) = transfer.request() {
        controller.accept(&request).unwrap();
        transfer.sent();
        let Some(Action::Reply(reply)) = controller.issue() else {
            panic!("no reply to {request:?}");
        };
        assert_eq!(transfer.reply(&reply), Ok(None));
    }
    let Some(Action::Reply(reply)) = controller.validate() else {
        panic!("no verdict");
    };
    assert_eq!(transfer.reply(&reply), Ok(Some(Err(Abort::Locked))));
}

#[test]
fn readers_keep_writers_out_and_give_back_what_they_took() {
    let design = Design {
        mode: Mode::ReaderLock,
        ..Design::PAPER
    };
    // A writer is in: nothing was taken. None is, and a block was stored to in the window: taken.
    for (version, torn, released) in [(3, false, false), (4, true, true), (4, false, true)] {
        let mut controller = Controller::new(design);
        asked(&mut controller, ID, 2, 2);
        let both = loads(&mut controller);
        assert_eq!(both[0].access, Access::TakeLock);
        controller.returned(&both[1], 0);
        if torn {
            controller.invalidated(101);
        }
        controller.returned(&both[0], version);
        // The base is invalidated by others that take the lock: that says nothing.
        controller.invalidated(100);
        if released {
            assert_eq!(controller.validate(), Some(Action::ReleaseLock(0)));
        }
        assert_eq!(verdict(&mut controller).is_none(), version == 4 && !torn);
    }
}

#[test]
fn bad_requests_change_nothing() {
    let mut controller = small(2, 32);
    asked(&mut controller, ID, 1, 1);
    let before = controller.clone();
    let register = |id, blocks, piece| Request::Register {
        id,
        base: 100,
        blocks,
        piece,
    };
    for (request, why) in [
        (register(OTHER, 0, 1), NotTaken::Length),
        (register(OTHER, 2, 0), NotTaken::Length),
        (register(OTHER, MAX_BLOCKS + 1, 1), NotTaken::Length),
        (register(ID, 1, 1), NotTaken::Known),
        (Request::Block(OTHER), NotTaken::Unknown),
        (Request::Block(ID), NotTaken::Unknown),
    ] {
        assert_eq!(controller.accept(&request), Err(why), "{request:?}");
    }
    let load = Load {
        entry: 9,
        nth: 0,
        access: Access::Read,
    };
    assert_eq!(controller.returned(&load, 0), None);
    assert_eq!(controller, before);
}
