//! Planted defects: each replaces a piece of a shipped file by another, and one scenario must find
//! it. `build.rs` makes the files, and fails when a piece is not in its file exactly once: then the
//! code has changed, and so must its row.

/// A planted defect.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    /// What is wrong.
    pub name: &'static str,
    /// The file, by the name of its module.
    pub module: &'static str,
    /// The piece, as it ships.
    pub shipped: &'static str,
    /// As it is here.
    pub planted: &'static str,
    /// The scenario that finds it.
    pub scenario: &'static str,
    /// What it says then, or a part of it.
    pub says: &'static str,
}

macro_rules! plants {
    ($($module:ident, $name:literal: $shipped:literal => $planted:literal, $scenario:literal, $says:literal;)*) => {
        /// All of them.
        pub const PLANTS: &[Plant] = &[$(Plant {
            name: $name,
            module: stringify!($module),
            shipped: $shipped,
            planted: $planted,
            scenario: $scenario,
            says: $says,
        }),*];
    };
}

plants! {
    whole, "a reader looks at the version once":
        "    let version = unmoved(version, first.load(Relaxed))?;
    Ok((version, copied))" => "    Ok((version, copied))",
        "a read during a write of an object", "parts of two writes";
    whole, "a reader has no fence before its second look at the version":
        "    // No load of what was copied is after the second look.
    fence(Acquire);
    let version" => "    let version",
        "a read during a write of an object", "parts of two writes";
    whole, "a reader's first look at the version is relaxed":
        "    let version = first.load(Acquire);
    let meta" => "    let version = first.load(Relaxed);
    let meta",
        "a read during a write of an object", "another version's bytes";
    whole, "a writer has no fence after it has made the version odd":
        "    fence(Release);
    taken.is_ok()" => "    taken.is_ok()",
        "a read during a write of an object", "parts of two writes";
    whole, "a writer's last store of the version is relaxed":
        "first.store(version, Release);" => "first.store(version, Relaxed);",
        "a read during a write of an object", "another version's bytes";
    whole, "an object is read without a look at its life":
        "    let version = may_copy(version, meta, wanted)?;" => "    let _ = (may_copy, meta, wanted);",
        "a read while an object is freed and another takes its place", "right: Err(Gone)";
    whole, "a short read looks at the version once":
        "    unmoved(version, first.load(Relaxed)).ok()" => "    Some(version)",
        "a short read during a write of an object", "parts of two writes";
    whole, "a short read has no fence before its second look at the version":
        "    fence(Acquire);
    unmoved(version" => "    unmoved(version",
        "a short read during a write of an object", "parts of two writes";
    whole, "a short read's first look at the version is relaxed":
        "    let version = first.load(Acquire);
    if !is_as_known" => "    let version = first.load(Relaxed);
    if !is_as_known",
        "a short read during a write of an object", "another version's bytes";
    whole, "a short read does not look at the header":
        "!is_as_known(version, second.load(Relaxed), known)" => "!is_as_known(version, known.0, known) || second.load(Relaxed) == 0",
        "a short read while an object is freed and another takes its place", "right: Err(Gone)";
    cache, "the tag is looked at before the control word":
        "        let before = control.word.load(SeqCst);
        let unlocked = before & LOCKED == 0 && before & STATUS != 0;
        if !unlocked || !self.is_current(control, tag) {"
        => "        let current = self.is_current(control, tag);
        let before = control.word.load(SeqCst);
        let unlocked = before & LOCKED == 0 && before & STATUS != 0;
        if !unlocked || !current {",
        "a word of a block that makes way for another", "a word of another block";
    cache, "a store does not raise the version":
        "(self.word & !LOCKED).wrapping_add(VERSION)" => "self.word & !LOCKED",
        "a read during a write of two words", "half a write";
    cache, "a writer has no fence after it has locked":
        "            fence(Release);
            let result = f(self.block(entry));
            self.touch(control);" => "            let result = f(self.block(entry));
            self.touch(control);",
        "a read during a write of two words", "half a write";
    cache, "a writer of a word has no fence after it has locked":
        "        fence(Release);
        let result = f(cell);" => "        let result = f(cell);",
        "a read during two stores of a word", "the second store without the first";
    cache, "a reader has no fence before its second look":
        "            let result = f(self.block(entry));
            fence(Acquire);" => "            let result = f(self.block(entry));",
        "a read during a write of two words", "half a write";
    cache, "a reader of a word has no fence before its second look":
        "            .load(Relaxed);
        fence(Acquire);" => "            .load(Relaxed);",
        "a word of a block that makes way for another", "a word of another block";
    cache, "a reader of a word does not look a second time":
        "(control.word.load(Relaxed) == before).then_some(value)" => "Some(value)",
        "a word of a block that makes way for another", "a word of another block";
    cache, "an entry is unlocked without release":
        "word.swap(word, SeqCst)" => "word.swap(word, Relaxed)",
        "a read during a write of two words", "half a write";
    cache, "writes and first looks are in no one order":
        "        let before = control.word.load(SeqCst);
        let unlocked" => "        let before = control.word.load(Acquire);
        let unlocked",
        "two threads that each write and read the other's", "neither has seen it";
    cache, "an entry is filled before its word says that it is empty":
        "        wait_until(|| word.load(Acquire) & (LOCKED | STATUS) == 0);\n"
        => "        let _ = word;\n",
        "a block that makes way for another", "bytes of another block";
    cache, "an entry is filled without a fence":
        "        fence(Release);
        self.block(entry)" => "        self.block(entry)",
        "a block that makes way for another", "bytes of another block";
    cache, "a writer does not look whether it has the lock":
        "        control
            .word
            .compare_exchange(before, before | LOCKED, Acquire, Relaxed)
            .ok()?;" => "        control.word.swap(before | LOCKED, Acquire);",
        "a block taken away during a store", "a store that was acknowledged and is lost";
    cache, "the network locks an entry without acquire":
        "                    .compare_exchange_weak(before, before | LOCKED, Acquire, Relaxed)
                    .is_ok()" => "                    .compare_exchange_weak(before, before | LOCKED, Relaxed, Relaxed)
                    .is_ok()",
        "a block taken away during a store", "a store that was acknowledged and is lost";

    fast, "a thread enters without acquire":
        "next, Acquire, Relaxed" => "next, Relaxed, Relaxed",
        "a turn opens the word", "older than the right to see it";
    fast, "a thread leaves without release":
        "next, Release, Relaxed" => "next, Relaxed, Relaxed",
        "two writers by the word", "a lost write";
    fast, "a word is opened without release":
        "self.0.store(flags, Release)" => "self.0.store(flags, Relaxed)",
        "a turn opens the word", "older than the right to see it";
    fast, "a word is closed without acquire":
        "self.0.swap(0, AcqRel)" => "self.0.swap(0, Release)",
        "a turn closes the word", "less than a writer has left";
    fast, "a word is closed by a look and a store":
        "self.0.swap(0, AcqRel)" => "{ let word = self.0.load(Acquire); self.0.store(0, Release); word }",
        "a turn closes the word", "left";
    fast, "a writer does not look for readers":
        "word & (WRITER | READERS) == 0" => "word & WRITER == 0",
        "a reader and a writer by the word", "half a write";

    bell, "the bell is rung before the bit is set":
        "        self.bits[lane / 64].fetch_or(1 << (lane % 64), SeqCst);
        if self.word.load(SeqCst) != 0 && self.word.swap(0, SeqCst) != 0 {
            system::wake(self.word);
        }" => "        if self.word.load(SeqCst) != 0 && self.word.swap(0, SeqCst) != 0 {
            system::wake(self.word);
        }
        self.bits[lane / 64].fetch_or(1 << (lane % 64), SeqCst);",
        "a packet wakes its receiver", "deadlock";
    bell, "the receiver does not look for bits before it sleeps":
        "self.bits.iter().all(|bits| bits.load(SeqCst) == 0)" => "true",
        "a packet wakes its receiver", "deadlock";
    bell, "the receiver says that it sleeps with a store that may be late":
        "self.word.store(system::ASLEEP, SeqCst);\n        if self.bits.iter().all(|bits| bits.load(SeqCst) == 0)"
        => "self.word.store(system::ASLEEP, std::sync::atomic::Ordering::Release);
        if self.bits.iter().all(|bits| bits.load(std::sync::atomic::Ordering::Acquire) == 0)",
        "a packet wakes its receiver", "deadlock";
    bell, "the sender looks whether the receiver sleeps too early":
        "fetch_or(1 << (lane % 64), SeqCst);\n        if self.word.load(SeqCst) != 0"
        => "fetch_or(1 << (lane % 64), std::sync::atomic::Ordering::Release);
        if self.word.load(std::sync::atomic::Ordering::Acquire) != 0",
        "a packet wakes its receiver", "deadlock";
    bell, "a bit is set over the others":
        "        self.bits[lane / 64].fetch_or(1 << (lane % 64), SeqCst);" => "        self.bits[lane / 64].store(1 << (lane % 64), SeqCst);",
        "two senders wake one receiver", "deadlock";

    lane, "a packet is there before its bytes are":
        "        ring.tail.store(self.tail, Release);
        true" => "        ring.tail.store(self.tail, Relaxed);
        true",
        "a lane is used again", "";
    lane, "a receiver takes bytes that may not be there":
        "        let tail = ring.tail.load(Acquire);
        let found" => "        let tail = ring.tail.load(Relaxed);
        let found",
        "a lane is used again", "";
    lane, "a sender does not look for room":
        "        if !self.has_room(ring, (skip + need) as u64) {" => "        if false {",
        "a lane is used again", "";

    slots, "a requester in use is passed over":
        "                if is_past(at) {" => "                let _ = (&mut is_past, &pause);\n                if true {",
        "an epoch ends while a requester begins", "an event of the old epoch goes on";
    slots, "requesters beyond those that are known are passed over":
        "        for at in 0..self.0.len() {
            loop {" => "        for at in 0..1 {
            loop {",
        "an epoch ends while a requester begins", "an event of the old epoch goes on";
    places, "the words of a copy change while its version is even":
        "            version.store(before | CHANGES, Relaxed);" => "",
        "a copy that is replaced while it is read", "parts of two copies";
    places, "a copy's words are read before its version":
        "let before = version.load(Acquire);" => "let before = version.load(Relaxed);",
        "a copy that is replaced while it is read", "";
    places, "a copy's words are read after its version was looked at again":
        "        fence(Acquire);" => "",
        "a copy that is replaced while it is read", "parts of two copies";
    places, "a copy's words are there before it is said that they change":
        "            fence(Release);" => "",
        "a copy that is replaced while it is read", "parts of two copies";
    open_sections, "a section that is counted too late is waited for by nobody":
        "            if (self.current.load(Acquire) & 1) as usize == age {" => "            if age < 2 {",
        "memory is reused beside a section", "it is reused in a section";
    open_sections, "those that were open before are not waited for":
        "then_some((before & 1) as usize)" => "then_some((before & 1 ^ 1) as usize)",
        "memory is reused beside a section", "it is reused in a section";
    open_sections, "no fence is put into other threads":
        "        heavy_fence().then_some(" => "        true.then_some(",
        "memory is reused beside a section", "it is reused in a section";
    open_sections, "a section begins without its half of the fence":
        "            light_fence();" => "",
        "memory is reused beside a section", "it is reused in a section";
}
