//! The commands of publish and subscribe.

use super::*;
use crate::command::pubsub;

const SUB: Flags = FENCED;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const PUBSUB: &'static [Command<M>] = commands! { "pubsub":
        "publish"       3 FAST  NO_KEY "2.0.0" pubsub::publish,      "Sends a message to all who have subscribed to a channel.";
        "subscribe"    -2 SUB   NO_KEY "2.0.0" pubsub::subscribe,    "Listens for messages of channels.";
        "unsubscribe"  -1 SUB   NO_KEY "2.0.0" pubsub::unsubscribe,  "Stops listening for messages of channels.";
        "psubscribe"   -2 SUB   NO_KEY "2.0.0" pubsub::psubscribe,   "Listens for messages of channels that match patterns.";
        "punsubscribe" -1 SUB   NO_KEY "2.0.0" pubsub::punsubscribe, "Stops listening for messages of channels that match patterns.";
        "spublish"      3 FAST  NO_KEY "7.0.0" pubsub::spublish,     "Sends a message to all who have subscribed to a shard channel.";
        "ssubscribe"   -2 SUB   NO_KEY "7.0.0" pubsub::ssubscribe,   "Listens for messages of shard channels.";
        "sunsubscribe" -1 SUB   NO_KEY "7.0.0" pubsub::sunsubscribe, "Stops listening for messages of shard channels.";
        "pubsub"       -2 PLAIN NO_KEY "2.8.0" subcommand [pubsub::subcommands], "Tells who has subscribed to what.";
    };
}
