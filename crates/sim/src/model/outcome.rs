//! What a run of the model tells.

/// Packets of a run. Of those sent, the ones that are not received yet are under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Sent by nodes and the switch, those that stay in a node included.
    pub sent: u64,
    /// Taken by threads, agents and the switch.
    pub received: u64,
    /// Sent and received by nodes over their links.
    pub on_links: u64,
}

/// How busy the busiest of a kind was, from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Use {
    /// Home agents, or whatever threads serve a node's messages.
    pub home_agent: f64,
    /// Cache agents, where they are threads of their own.
    pub cache_agent: f64,
    /// Links, one way.
    pub link: f64,
    /// Application threads, on average: the rest of their time they wait for answers.
    pub threads: f64,
}

/// Above this, something is called the bottleneck.
const BUSY: f64 = 0.8;

impl Use {
    /// What keeps the rack from being faster.
    pub fn bound(&self) -> &'static str {
        let rows = [
            (self.home_agent, "home agent"),
            (self.cache_agent, "cache agent"),
            (self.link, "link"),
            (self.threads, "threads' own work"),
        ];
        let most = rows.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        most.filter(|row| row.0 >= BUSY)
            .map_or("round trips", |row| row.1)
    }
}

/// What was measured after warm-up, and how the run ended.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome<F> {
    /// Operations that ended while it was measured: accesses, or acquisitions.
    pub operations: u64,
    /// How long that was, in virtual nanoseconds.
    pub nanoseconds: u64,
    /// What is measured of these operations.
    pub of: F,
    /// Packets sent and received by nodes over their links.
    pub packets: u64,
    /// Packets sent and received by home agents (Fig. 10), those that stay in a node included.
    pub home_packets: u64,
    /// Operations of the thread that did fewest, by operations of the one that did most;
    /// of the node, for acquisitions.
    pub fairness: f64,
    /// The longest queue before an agent.
    pub longest_queue: usize,
    /// What was how busy.
    pub used: Use,
    /// Entries of blocks that the switch owned in the end.
    pub in_switch: usize,
    /// Of the whole run: what threads' nodes asked GCP's directory for.
    pub requests: u64,
    /// Of the whole run: threads that entered because of that.
    pub granted: u64,
    /// Of the whole run: releases that GCP's directory refused, because a request was under way to
    /// the one that released.
    pub denied: u64,
    /// Of the whole run: threads that were in the middle of something when nothing was left to
    /// happen, or when no operation had ended for ten virtual seconds.
    pub unfinished: u64,
    /// Of the whole run: threads that came in while others were inside who should not have been.
    pub overlaps: u64,
    /// Of the whole run: packets.
    pub traffic: Traffic,
    /// Of the whole run: packets that nobody had taken when nothing was left to happen.
    pub in_flight: u64,
    /// Of the whole run: answers that no correct rack gives, such as a requester that gives up.
    pub failures: u64,
    /// Of the whole run: what the simulator went through.
    pub occurrences: u64,
    /// A number that the whole run decides.
    pub digest: u64,
}

impl<F> Outcome<F> {
    /// Millions of operations a second of the whole rack.
    pub fn mops(&self) -> f64 {
        self.operations as f64 * 1e3 / self.nanoseconds.max(1) as f64
    }

    /// A count by the number of operations.
    pub fn per_operation(&self, count: u64) -> f64 {
        count as f64 / self.operations.max(1) as f64
    }
}
