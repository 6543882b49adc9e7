//! A node's agents: threads that serve one message after another from bounded queues,
//! and take time.

use super::agenda::{Agenda, Occurrence};
use super::params::Agents;
use crate::site::Load;
use rackmem_proto::Output;
use std::collections::VecDeque;

/// What an agent serves.
#[derive(Clone, Debug)]
pub enum Job {
    /// A packet that has come.
    Packet(u32),
    /// Something to send.
    Post(Output, Load<()>),
}

/// Whose a job is: whether it is about what the node holds of others' memory; which of the owners',
/// where each thread has its own part.
pub type Whose = (bool, u32);

#[derive(Clone, Default)]
struct Server {
    job: Option<Job>,
    free: u64,
    used: u64,
}

/// See the module.
pub struct Servers {
    node: u16,
    agents: Agents,
    servers: Box<[Server]>,
    /// Jobs, and what they cost. As long at most as there are packets in flight,
    /// which the rack's threads bound.
    queues: Box<[VecDeque<(Job, u64)>]>,
    /// The longest queue so far.
    pub longest: usize,
}

impl Servers {
    /// Those of a node, idle.
    pub fn new(node: u16, agents: Agents) -> Self {
        let (servers, queues) = match agents {
            Agents::HomeAndCache => (2, 2),
            Agents::Pool(servers) => (servers.max(1), 1),
            Agents::Owners(servers) => (servers.max(1), servers.max(1)),
        };
        Servers {
            node,
            agents,
            servers: vec![Server::default(); servers.into()].into(),
            queues: vec![VecDeque::new(); queues.into()].into(),
            longest: 0,
        }
    }

    /// Time that each has spent.
    pub fn used(&self) -> impl ExactSizeIterator<Item = u64> {
        self.servers.iter().map(|server| server.used)
    }

    /// Forgets what was counted.
    pub fn reset(&mut self) {
        self.longest = 0;
        self.servers.iter_mut().for_each(|server| server.used = 0);
    }

    /// A job for the agent of what the node holds, or for the one of what others ask; or for all,
    /// or for the owner.
    pub fn enqueue(&mut self, (holds, owner): Whose, job: Job, cost: u64, agenda: &mut Agenda) {
        let queue = match self.agents {
            Agents::HomeAndCache => usize::from(holds),
            Agents::Pool(_) => 0,
            Agents::Owners(_) => owner as usize % self.queues.len(),
        };
        let mut serving = match self.queues.len() {
            1 => 0..self.servers.len(),
            _ => queue..queue + 1,
        };
        match serving.find(|&at| self.servers[at].job.is_none()) {
            Some(server) => self.start(server, job, cost, agenda),
            None => {
                self.queues[queue].push_back((job, cost));
                self.longest = self.longest.max(self.queues[queue].len());
            }
        }
    }

    fn start(&mut self, at: usize, job: Job, cost: u64, agenda: &mut Agenda) {
        let server = &mut self.servers[at];
        server.job = Some(job);
        server.used += cost;
        let done = server.free.max(agenda.now()) + cost;
        let (node, server) = (self.node, at as u16);
        agenda.enter(done, Occurrence::Served { node, server });
    }

    /// What a server has been at, and is done with.
    pub fn done(&mut self, server: u16) -> Option<Job> {
        self.servers[usize::from(server)].job.take()
    }

    /// It spends so much more on sending, and takes the next.
    pub fn go_on(&mut self, server: u16, sending: u64, agenda: &mut Agenda) {
        let at = usize::from(server);
        let server = &mut self.servers[at];
        server.used += sending;
        server.free = agenda.now() + sending;
        let queue = at.min(self.queues.len() - 1);
        if let Some((job, cost)) = self.queues[queue].pop_front() {
            self.start(at, job, cost, agenda);
        }
    }
}
