//! What every store must do.

use crate::witness::{PATIENCE, Scratch};
use rackmem::membership::{
    Asked, Beat, Copyset, Folder, Layout, Links, Memory, Places, Role, Roster, Store, View,
};
use std::sync::Arc;

pub fn demand(store: &Arc<dyn Store>) {
    one_proposal_a_version_is_taken(store);
    beats_are_shown(store);
    one_proposal_of_groups_a_version_is_taken(store);
}

/// Threads race for every version; each is won once.
fn one_proposal_a_version_is_taken(store: &Arc<dyn Store>) {
    const RACERS: u64 = 4;
    const WINS: u64 = 10;
    assert!(store.load(PATIENCE).unwrap().roster.is_none());
    let race = |token: u64| {
        let mut versions = Vec::new();
        while versions.len() < WINS as usize {
            let role = Role::Node(token as u16);
            let next = match store.load(PATIENCE).unwrap().roster {
                None => Roster::first(role, token),
                Some(roster) => roster
                    .leave(role, roster.view.epoch)
                    .or_else(|| roster.admit(role, token))
                    .unwrap(),
            };
            if store.propose(&next, PATIENCE).unwrap() {
                versions.push(next.view.version);
            }
        }
        versions
    };
    let mut won: Vec<u64> = std::thread::scope(|scope| {
        let racers: Vec<_> = (1..=RACERS)
            .map(|token| scope.spawn(move || race(token)))
            .collect();
        racers
            .into_iter()
            .flat_map(|racer| racer.join().unwrap())
            .collect()
    });
    won.sort();
    assert_eq!(won, (1..=RACERS * WINS).collect::<Vec<_>>());
    let roster = store.load(PATIENCE).unwrap().roster.unwrap();
    assert_eq!(roster.view.version, RACERS * WINS);
    // Neither again, nor the one after the next.
    assert!(!store.propose(&roster, PATIENCE).unwrap());
    let far = roster.touch().unwrap().touch().unwrap();
    assert!(!store.propose(&far, PATIENCE).unwrap());
    assert_eq!(store.load(PATIENCE).unwrap().roster, Some(roster));
}

/// Threads race for every version of the groups; each is won once, and no name is taken twice.
fn one_proposal_of_groups_a_version_is_taken(store: &Arc<dyn Store>) {
    const RACERS: usize = 4;
    const WINS: usize = 6;
    assert_eq!(store.groups(PATIENCE).unwrap(), None);
    let view = View::first(Copyset(0b111), false);
    let lines = Layout::new(64, 640).unwrap();
    let race = |racer: usize| {
        for win in 0..WINS {
            loop {
                let groups = store.groups(PATIENCE).unwrap().unwrap_or_default();
                let name = format!("region {racer}.{win}");
                let next = groups
                    .create((&name, 7), Asked::new(lines, 3), (&view, 0))
                    .unwrap();
                if store.propose_groups(&next, PATIENCE).unwrap() {
                    break;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for racer in 0..RACERS {
            scope.spawn(move || race(racer));
        }
    });
    let groups = store.groups(PATIENCE).unwrap().unwrap();
    assert_eq!(groups.rows.len(), RACERS * WINS);
    assert_eq!(groups.version, (RACERS * WINS) as u64);
    assert!(!store.propose_groups(&groups, PATIENCE).unwrap());
    // The roster is another register.
    let roster = store.load(PATIENCE).unwrap().roster.unwrap();
    assert_ne!(roster.view.version, groups.version);
}

fn beats_are_shown(store: &Arc<dyn Store>) {
    let roster = store.load(PATIENCE).unwrap().roster.unwrap();
    let full = roster.admit(Role::Node(9), 9).and_then(|it| {
        assert!(store.propose(&it, PATIENCE).unwrap());
        it.admit(Role::Switch, 10)
    });
    assert!(store.propose(&full.unwrap(), PATIENCE).unwrap());
    for counter in 1..4 {
        for role in [Role::Node(9), Role::Switch] {
            let beat = Beat {
                token: u64::MAX,
                incarnation: 1,
                counter,
                links: Links {
                    unheard: Places::EMPTY.with(Role::Node(31)).with(Role::Switch),
                    starved: counter == 2,
                },
            };
            store.beat(role, beat, PATIENCE).unwrap();
            assert_eq!(
                store.load(PATIENCE).unwrap().beats[role.index()],
                Some(beat)
            );
        }
    }
}

#[test]
fn memory_keeps_the_rules() {
    demand(&(Arc::new(Memory::default()) as Arc<dyn Store>));
}

#[test]
fn a_folder_keeps_the_rules() {
    let scratch = Scratch::new("folder-rules");
    let store: Arc<dyn Store> = Arc::new(Folder::open(scratch.path()).unwrap());
    demand(&store);
    for _ in 0..200 {
        let roster = store.load(PATIENCE).unwrap().roster.unwrap();
        assert!(store.propose(&roster.touch().unwrap(), PATIENCE).unwrap());
    }
    let files = std::fs::read_dir(scratch.path()).unwrap().count();
    assert!(files < 100, "old versions stay: {files}");
}
