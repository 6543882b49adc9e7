//! Clients in hosts, who record what they are told and live through the death of their server.

#[path = "../cli/resp.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod resp;

use rackmem_hosts::Place;
use rackmem_hosts::rack::{HostRack, STORE};
use rackmem_sim::history::{Call, ClientLog, Operation, Outcome, Recorder, Reply};
use rackmem_sim::linear::{Limits, check};
use resp::{Answer, Client};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Clients of each host.
const EACH: usize = 2;
/// Operations of one client at most.
const OPERATIONS: usize = 5000;
/// Few, so that clients meet, but several, so that some are where nothing has failed.
const KEYS: usize = 8;
/// After a failure, which lasts.
const PAUSE: Duration = Duration::from_millis(50);
/// Between operations: the checker must keep up.
const BREATH: Duration = Duration::from_millis(1);
/// Long enough that who does nothing is taken to wait.
const WHILE: Duration = Duration::from_millis(500);
/// Longer than a rack takes for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// The client that stands for deaths in a history.
const DEATH: u32 = u32::MAX;

/// What all clients were told.
pub struct Record {
    recorder: Recorder,
    /// Nobody has used them before: what one record leaves behind is not in the next.
    keys: Vec<String>,
    deaths: Mutex<Vec<u64>>,
}

impl Record {
    pub fn new() -> Record {
        static RECORDS: AtomicUsize = AtomicUsize::new(0);
        let number = RECORDS.fetch_add(1, Relaxed);
        Record {
            recorder: Recorder::new(OPERATIONS),
            keys: (0..KEYS).map(|key| format!("{number}:{key}")).collect(),
            deaths: Mutex::new(Vec::new()),
        }
    }

    /// The time on the clients' clock.
    pub fn now(&self) -> u64 {
        self.recorder.now()
    }

    /// A host died then.
    pub fn died(&self, at: u64) {
        self.deaths.lock().unwrap().push(at);
    }

    /// It must have come from one memory. The death of a host may take each key's value with it,
    /// once, then or later: each is a DEL that nobody knows the end of.
    pub fn judge(self) {
        let deaths = self.deaths.into_inner().unwrap();
        let mut history = self.recorder.into_history();
        let met = |pair: &[Operation]| pair[0].returned().is_some_and(|end| end > pair[1].invoke);
        assert!(
            history.windows(2).any(met),
            "no two operations met: this shows nothing"
        );
        let gone = |invoke: u64, key: &str| Operation {
            client: DEATH,
            key: key.into(),
            call: Call::Del,
            invoke,
            outcome: Outcome::Unknown,
        };
        for at in deaths {
            history.extend(self.keys.iter().map(|key| gone(at, key)));
        }
        let verdict = check(&history, Limits::default());
        assert!(verdict.is_linearizable(), "{verdict}");
    }
}

/// Clients at work.
pub struct Clients {
    done: Vec<AtomicUsize>,
    stop: AtomicBool,
}

impl Clients {
    /// Lets clients of all hosts work while this is done.
    pub fn work(rack: &HostRack, record: &Record, during: impl FnOnce(&Clients)) {
        let count = rack.hosts().count() * EACH;
        let clients = Clients {
            done: (0..count).map(|_| AtomicUsize::new(0)).collect(),
            stop: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            let clients = &clients;
            for number in 0..count {
                scope.spawn(move || clients.run(rack, record, number));
            }
            let stop = Stop(&clients.stop);
            during(clients);
            drop(stop);
        });
    }

    /// Waits until every client has done so many more.
    pub fn until_each_has_done(&self, more: usize) {
        self.until("every client", |done| done.iter().all(|&done| done >= more));
    }

    /// Waits until one of them has done nothing for a while: it waits for what it does not get.
    pub fn until_one_waits(&self) {
        let counts = || self.done.iter().map(|done| done.load(Relaxed));
        let end = Instant::now() + PATIENCE;
        loop {
            let before: Vec<usize> = counts().collect();
            std::thread::sleep(WHILE);
            if counts().zip(before).any(|(now, before)| now == before) {
                return;
            }
            assert!(Instant::now() < end, "nobody waits for anything");
        }
    }

    /// Waits until any of them have, all together.
    pub fn until_some_have_done(&self, more: usize) {
        self.until("clients", |done| done.iter().sum::<usize>() >= more);
    }

    fn until(&self, who: &str, enough: impl Fn(&[usize]) -> bool) {
        let counts = || self.done.iter().map(|done| done.load(Relaxed));
        let (before, end) = (counts().collect::<Vec<_>>(), Instant::now() + PATIENCE);
        loop {
            let since: Vec<usize> = counts()
                .zip(&before)
                .map(|(now, before)| now - before)
                .collect();
            if enough(&since) {
                return;
            }
            assert!(Instant::now() < end, "{who} did not go on: {since:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn run(&self, rack: &HostRack, record: &Record, number: usize) {
        let mut log = record.recorder.client(number as u32);
        let mut random = fastrand::Rng::with_seed(number as u64);
        let (mut client, mut written) = (None, 0);
        while !self.stop.load(Relaxed) {
            let Some(connection) = &mut client else {
                client = connect(rack, number / EACH);
                if client.is_none() {
                    std::thread::sleep(PAUSE);
                }
                continue;
            };
            written += 1;
            let value = format!("{number}.{written}");
            let call = match random.u8(..100) {
                0..50 => Call::Get,
                50..80 => Call::Set { value },
                80..90 => Call::Swap { value },
                _ => Call::Del,
            };
            let key = &record.keys[random.usize(..KEYS)];
            match step(&mut log, connection, key, call) {
                Step::Done => {
                    self.done[number].fetch_add(1, Relaxed);
                    std::thread::sleep(BREATH);
                }
                Step::Refused => std::thread::sleep(PAUSE),
                Step::Broken => client = None,
                Step::Full => return,
            }
        }
    }
}

/// Ends the clients, also when what is done meanwhile panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A connection of a host's client to its store; none while there is no server.
fn connect(rack: &HostRack, host: usize) -> Option<Client> {
    let stream = rack
        .hosts()
        .within(Place::Host(host), || TcpStream::connect(STORE));
    Some(Client::over(stream.ok()?.ok()?))
}

enum Step {
    Done,
    /// Answered with an error.
    Refused,
    /// The connection is of no use any more.
    Broken,
    /// There is no room to record more.
    Full,
}

fn step(log: &mut ClientLog<'_>, client: &mut Client, key: &str, call: Call) -> Step {
    let Ok(ticket) = log.begin(key, call.clone()) else {
        return Step::Full;
    };
    let words = match &call {
        Call::Set { value } => vec!["SET", key, value],
        Call::Swap { value } => vec!["GETSET", key, value],
        Call::Del => vec!["DEL", key],
        _ => vec!["GET", key],
    };
    // What ends in any other way has happened or not: nobody knows,
    // except that a read changes nothing.
    let reply = match (&call, client.try_call(&words)) {
        (_, Err(_)) => return Step::Broken,
        (Call::Get, Ok(Answer::Error(_))) => {
            log.fail(ticket);
            return Step::Refused;
        }
        (_, Ok(Answer::Error(_))) => return Step::Refused,
        (Call::Set { .. }, Ok(Answer::Text(ok))) if ok == "OK" => Reply::Nil,
        (Call::Del, Ok(Answer::Int(done))) => Reply::Bool(done == 1),
        (Call::Get | Call::Swap { .. }, Ok(Answer::Nil)) => Reply::Nil,
        (Call::Get | Call::Swap { .. }, Ok(Answer::Text(value))) => Reply::Text(value),
        (call, Ok(answer)) => panic!("{call} is answered with {answer:?}"),
    };
    log.ok(ticket, reply);
    Step::Done
}
