//! Bounded staleness, by the paper's names: memory that all nodes have mapped and no hardware keeps
//! coherent.

use crate::handle::{Handle, bytes, bytes_mut, give, name, of, opaque, take, tell};
use crate::lock::rm_lock;
use crate::rack::rm_node;
use crate::status::{Done, Failed, call, rm_status};
use rackmem::bounded::{Arena, ArenaSection, ArenaSlot, ArenaSpec, ArenaWriter, Fresh, Pointer};
use rackmem::locked::Mutex;
use rackmem::{ArenaError, Node};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

/// An arena: objects in a file or a device that all nodes have mapped.
pub struct bi_arena(Handle<Arc<Arena>>);
opaque!(bi_arena, Arc<Arena>);

/// A section that is open, of one thread.
pub struct bi_section {
    /// Ends before the arena does.
    section: ArenaSection<'static>,
    lazily: bool,
    _arena: Arc<Arena>,
}

/// One writer of the rack, of one thread.
pub struct bi_writer {
    /// Ends before the lock and the arena do.
    writer: ArenaWriter<'static, u64>,
    /// Objects that nothing leads to yet, by the number that C has.
    fresh: BTreeMap<u64, Fresh<[u8]>>,
    count: u64,
    _lock: Arc<Mutex<u64>>,
    _arena: Arc<Arena>,
}

/// Where an arena is, how large, and how old what is read may be: the same on all nodes. Zeros
/// where a field says so.
#[repr(C)]
pub struct bi_spec {
    /// A device, or a file of a memory that machines share, or of /dev/shm.
    pub path: *const c_char,
    /// Bytes, from the beginning on.
    pub bytes: u64,
    /// How old what a section reads may be when it begins, in microseconds, 5000 at least; 0:
    /// 10000.
    pub bound: u64,
    /// Entries of a ring, 2 to 4096; 0: 4096.
    pub ring: u64,
    /// Each process has a cache of its own in front, which nothing keeps coherent: for tests on
    /// one host.
    pub emulated: bool,
}

/// Says which object a program drops itself, with the context that bi_stale_object_quiescent was
/// given: puts a pointer to it where its second argument leads. false: there is no more. It must
/// not call this library.
pub type bi_next = Option<unsafe extern "C" fn(context: *mut c_void, pointer: *mut u64) -> bool>;

unsafe fn spec_of(spec: *const bi_spec) -> Done<ArenaSpec> {
    // SAFETY: the caller's.
    let spec = unsafe { spec.as_ref() };
    let spec = spec.ok_or_else(|| Failed::argument("the specification is NULL"))?;
    // SAFETY: the caller's.
    let path = unsafe { name(spec.path)? };
    let mut arena = ArenaSpec::new(path, spec.bytes);
    if spec.bound > 0 {
        arena = arena.bound(Duration::from_micros(spec.bound));
    }
    if spec.ring > 0 {
        arena = arena.ring(spec.ring);
    }
    Ok(match spec.emulated {
        true => arena.emulated(),
        false => arena,
    })
}

/// # Safety
/// As for bi_create.
unsafe fn attach(
    node: *const rm_node,
    spec: *const bi_spec,
    out: *mut *mut bi_arena,
    by: fn(&Node, &ArenaSpec) -> Result<Arena, ArenaError>,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (node, spec) = (of(node)?, spec_of(spec)?);
        give(out, || Ok(Arc::new(by(node, &spec)?)))
    })
}

/// Makes an arena and attaches it; only one node may, at a time. RM_OTHER with the code "is-there":
/// there is one.
///
/// # Safety
/// `node` is a handle; `spec` may be read, and its path ends with a zero; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_create(
    node: *const rm_node,
    spec: *const bi_spec,
    out: *mut *mut bi_arena,
) -> rm_status {
    // SAFETY: the caller's.
    unsafe { attach(node, spec, out, Arena::create) }
}

/// Attaches the arena that is there. A node has it once.
///
/// # Safety
/// As for bi_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_open(
    node: *const rm_node,
    spec: *const bi_spec,
    out: *mut *mut bi_arena,
) -> rm_status {
    // SAFETY: the caller's.
    unsafe { attach(node, spec, out, Arena::open) }
}

/// Ends the handle. The node leaves the arena when the sections and writers of it have ended, too.
///
/// # Safety
/// `arena` is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_close(arena: *mut bi_arena) {
    // SAFETY: the caller's.
    drop(unsafe { take(arena) });
}

/// A slot, which is a place for a pointer: one of the 64 that programs find by their numbers.
///
/// # Safety
/// `arena` is a handle, `slot` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_root(arena: *const bi_arena, nth: u64, slot: *mut u64) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        tell(slot, of(arena)?.slot::<[u8]>(nth)?.to_word());
        Ok(rm_status::RM_OK)
    })
}

/// The slot that is the word at this byte, a multiple of 8, of the object that a pointer leads to.
///
/// # Safety
/// `slot` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_field(pointer: u64, at: usize, slot: *mut u64) -> rm_status {
    call(|| {
        let field = pointer_of(pointer)?.slot_at::<[u8]>(at);
        let field = field.ok_or_else(|| Failed::argument("no word of an object begins there"))?;
        // SAFETY: the caller's.
        unsafe { tell(slot, field.to_word()) };
        Ok(rm_status::RM_OK)
    })
}

fn pointer_of(word: u64) -> Done<Pointer<[u8]>> {
    Pointer::from_word(word).ok_or_else(|| Failed::argument("the pointer is 0"))
}

fn word_of(pointer: Option<Pointer<[u8]>>) -> u64 {
    pointer.map_or(0, Pointer::to_word)
}

/// Begins a section: what it reads was current at most the bound ago. If this node is late, it
/// quiesces first. RM_STALE: that has taken too long.
///
/// # Safety
/// `arena` is a handle, `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_enter(arena: *const bi_arena, out: *mut *mut bi_section) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let arena = of(arena)?.clone();
        let section = arena.enter()?;
        // SAFETY: it borrows the arena, which is on the heap and ends after it (the order of
        // `bi_section`'s fields).
        let section = std::mem::transmute::<ArenaSection<'_>, ArenaSection<'static>>(section);
        let section = bi_section {
            section,
            lazily: false,
            _arena: arena,
        };
        boxed(out, section)
    })
}

/// Ends a section, whose pointers are good no longer. RM_STALE: it has lasted too long, or the
/// process has slept in it, and what it has read is to be thrown away.
///
/// # Safety
/// `section` is of bi_enter, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_exit(section: *mut bi_section) -> rm_status {
    call(|| {
        // SAFETY: the caller's.
        let section = unsafe { unboxed(section) };
        section.ok_or_else(no_section)?.section.finish()?;
        Ok(rm_status::RM_OK)
    })
}

/// From now on the section looks past the cache, for what was added just now; or no longer.
///
/// # Safety
/// `section` is of bi_enter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_look_lazily(section: *mut bi_section, lazily: bool) -> rm_status {
    call(|| {
        // SAFETY: the caller's.
        let section = unsafe { section.as_mut() };
        section.ok_or_else(no_section)?.lazily = lazily;
        Ok(rm_status::RM_OK)
    })
}

fn no_section() -> Failed {
    Failed::argument("the section is NULL")
}

/// What a slot leads to: a pointer, which is good in this section; 0: nothing.
///
/// # Safety
/// `section` is of bi_enter, `pointer` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_load(
    section: *const bi_section,
    slot: u64,
    pointer: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    let section = unsafe { section.as_ref() };
    call(|| {
        let slot = ArenaSlot::<[u8]>::from_word(slot);
        let found = section.ok_or_else(no_section)?.look(|now| now.load(slot))?;
        // SAFETY: the caller's.
        unsafe { tell(pointer, word_of(found)) };
        Ok(rm_status::RM_OK)
    })
}

/// Copies bytes of an object, from a multiple of 8 on. What the section reads may be anything,
/// never a fault, until bi_exit says RM_OK.
///
/// # Safety
/// `section` is of bi_enter; `len` bytes may be written at `into`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_dereference(
    section: *const bi_section,
    pointer: u64,
    at: usize,
    into: *mut c_void,
    len: usize,
) -> rm_status {
    // SAFETY: the caller's.
    let (section, into) = unsafe { (section.as_ref(), || bytes_mut(into, len)) };
    call(|| {
        let (pointer, into) = (pointer_of(pointer)?, into()?);
        let section = section.ok_or_else(no_section)?;
        section.look(|now| now.read_bytes(pointer, at, into))?;
        Ok(rm_status::RM_OK)
    })
}

impl bi_section {
    fn look<R>(&self, f: impl FnOnce(&ArenaSection<'static>) -> R) -> R {
        match self.lazily {
            true => self.section.lookup_lazily(f),
            false => f(&self.section),
        }
    }
}

/// Waits for a lock of the rack, and writes under it until bi_written. All who write one object, or
/// one slot, do so under one lock, which this takes by itself.
///
/// # Safety
/// `arena` and `lock` are handles, `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_write(
    arena: *const bi_arena,
    lock: *const rm_lock,
    out: *mut *mut bi_writer,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (arena, lock) = (of(arena)?.clone(), of(lock)?.lock().clone());
        let writer = arena.writer(&*lock)?;
        // SAFETY: it borrows the arena and the lock, which are on the heap and end after it (the
        // order of `bi_writer`'s fields).
        let writer = std::mem::transmute::<ArenaWriter<'_, u64>, ArenaWriter<'static, u64>>(writer);
        let writer = bi_writer {
            writer,
            fresh: BTreeMap::new(),
            count: 0,
            _lock: lock,
            _arena: arena,
        };
        boxed(out, writer)
    })
}

/// Ends the writing, and lets the next writer in. Objects of bi_alloc that were not put in place
/// are lost.
///
/// # Safety
/// `writer` is NULL or of bi_write, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_written(writer: *mut bi_writer) {
    // SAFETY: the caller's.
    drop(unsafe { unboxed(writer) });
}

/// What a slot leads to now, past all caches; 0: nothing.
///
/// # Safety
/// `writer` is of bi_write, `pointer` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_writer_load(
    writer: *mut bi_writer,
    slot: u64,
    pointer: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let slot = ArenaSlot::<[u8]>::from_word(slot);
        tell(pointer, word_of(writing(writer)?.writer.load(slot)?));
        Ok(rm_status::RM_OK)
    })
}

/// Copies bytes of an object as they are now, from a multiple of 8 on.
///
/// # Safety
/// `writer` is of bi_write; `len` bytes may be written at `into`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_writer_read(
    writer: *mut bi_writer,
    pointer: u64,
    at: usize,
    into: *mut c_void,
    len: usize,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (pointer, into) = (pointer_of(pointer)?, bytes_mut(into, len)?);
        writing(writer)?.writer.read_bytes(pointer, at, into)?;
        Ok(rm_status::RM_OK)
    })
}

/// A new object that begins with these bytes and has room for `room`, 65536 at most; the rest is
/// zeros. Nothing leads to it before bi_assign_pointer, which takes its number.
///
/// # Safety
/// `writer` is of bi_write; `len` bytes may be read at `from`; `object` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_alloc(
    writer: *mut bi_writer,
    from: *const c_void,
    len: usize,
    room: usize,
    object: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (writer, bytes) = (writing(writer)?, bytes(from, len)?);
        let fresh = writer.writer.alloc_bytes(bytes, room)?;
        writer.count += 1;
        writer.fresh.insert(writer.count, fresh);
        tell(object, writer.count);
        Ok(rm_status::RM_OK)
    })
}

/// Puts a new object in place: readers see what was there, or all of this. `old`, unless NULL, gets
/// the pointer to what was there, which is the caller's to free, or 0.
///
/// # Safety
/// `writer` is of bi_write; `old` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_assign_pointer(
    writer: *mut bi_writer,
    slot: u64,
    object: u64,
    old: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    unsafe { put(writer, slot, object, old, ArenaWriter::assign) }
}

/// The same for a slot whose modifications nobody is told of: readers see it when they drop the
/// object that the slot is in by bi_stale_object_quiescent, or read past the cache, or by chance.
/// What was there is freed by the process that has replaced it, which tells all of the slot first.
///
/// # Safety
/// As for bi_assign_pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_assign_own(
    writer: *mut bi_writer,
    slot: u64,
    object: u64,
    old: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    unsafe { put(writer, slot, object, old, ArenaWriter::assign_untold) }
}

/// Leads a slot to an object that is in place elsewhere, or by 0 to nothing; `old` as of
/// bi_assign_pointer.
///
/// # Safety
/// `writer` is of bi_write; `old` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_lead(
    writer: *mut bi_writer,
    slot: u64,
    pointer: u64,
    old: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (slot, to) = (ArenaSlot::from_word(slot), Pointer::from_word(pointer));
        let before = writing(writer)?.writer.lead_bytes(slot, to)?;
        tell(old, word_of(before));
        Ok(rm_status::RM_OK)
    })
}

/// Changes the word at this byte, a multiple of 8, of an object that is in place: readers see the
/// old word or the new one.
///
/// # Safety
/// `writer` is of bi_write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_set(
    writer: *mut bi_writer,
    pointer: u64,
    at: usize,
    word: u64,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let pointer = pointer_of(pointer)?;
        writing(writer)?.writer.set_bytes(pointer, at, word)?;
        Ok(rm_status::RM_OK)
    })
}

/// An object that nothing leads to any more is not used: its memory is given out again when no node
/// can read it. Waits, if too much is waiting for that. RM_OTHER with the code "ring-full": other
/// nodes have not quiesced for as long as the rack's patience, and it is not freed.
///
/// # Safety
/// `writer` is of bi_write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_free(writer: *mut bi_writer, pointer: u64) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        writing(writer)?.writer.free_bytes(pointer_of(pointer)?)?;
        Ok(rm_status::RM_OK)
    })
}

/// Drops what others have modified until now: sections that begin after this see what was assigned
/// before it.
///
/// # Safety
/// `arena` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_quiesce(arena: *const bi_arena) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        of(arena)?.quiesce()?;
        Ok(rm_status::RM_OK)
    })
}

/// Drops what is left in this node's cache of objects that were freed until now, and what others
/// have modified: bi_quiesce, by the paper's name.
///
/// # Safety
/// `arena` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_free_object_quiescent(arena: *const bi_arena) -> rm_status {
    // SAFETY: the caller's.
    unsafe { bi_quiesce(arena) }
}

/// The same, and drops the objects that `next` says, whose modifications nobody is told of. NULL:
/// there are none. RM_ARGUMENT with the code "bad-pointer", or "bad-argument" for a 0: nothing is
/// dropped.
///
/// # Safety
/// `arena` is a handle; `next` is NULL or a function that may be called with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_stale_object_quiescent(
    arena: *const bi_arena,
    next: bi_next,
    context: *mut c_void,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let mut own = Vec::new();
        if let Some(next) = next {
            let mut pointer = 0;
            while next(context, &mut pointer) {
                own.push(pointer_of(pointer)?);
            }
        }
        of(arena)?.quiesce_stale_bytes(&own)?;
        Ok(rm_status::RM_OK)
    })
}

/// Makes memory that was freed free, as far as no cache can hold it; `count`, unless NULL, gets
/// the number of objects. A thread does the same at each tick.
///
/// # Safety
/// `arena` is a handle; `count` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bi_reclaim(arena: *const bi_arena, count: *mut usize) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        tell(count, of(arena)?.reclaim());
        Ok(rm_status::RM_OK)
    })
}

/// The tick, a fifth of the bound, since when all live nodes have dropped what was modified. Never
/// waits.
///
/// # Safety
/// `arena` is a handle; `tick` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synchronize_bi(arena: *const bi_arena, tick: *mut u64) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        tell(tick, of(arena)?.synchronize().0);
        Ok(rm_status::RM_OK)
    })
}

/// # Safety
/// As for bi_assign_pointer.
unsafe fn put(
    writer: *mut bi_writer,
    slot: u64,
    object: u64,
    old: *mut u64,
    by: Assign,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let writer = writing(writer)?;
        let fresh = writer.fresh.remove(&object);
        let fresh = fresh
            .ok_or_else(|| Failed::argument("no object of this writer has this number still"))?;
        let before = by(&mut writer.writer, ArenaSlot::from_word(slot), fresh)?;
        tell(old, word_of(before));
        Ok(rm_status::RM_OK)
    })
}

/// Puts an object in place; what was there before.
type Assign = fn(
    &mut ArenaWriter<'static, u64>,
    ArenaSlot<[u8]>,
    Fresh<[u8]>,
) -> Result<Option<Pointer<[u8]>>, ArenaError>;

/// A value on the heap, put where the caller wants it. What is made of a handle has passed the look
/// at its process; it is used by one thread for a short time and has none of its own.
///
/// # Safety
/// `out` is null, or may be written.
unsafe fn boxed<T>(out: *mut *mut T, value: T) -> Done {
    if out.is_null() {
        return Err(Failed::argument("there is no place for the handle (NULL)"));
    }
    // SAFETY: it may be written.
    unsafe { *out = Box::into_raw(Box::new(value)) };
    Ok(rm_status::RM_OK)
}

/// # Safety
/// `boxed` is null, or of [`boxed`], and not used again.
unsafe fn unboxed<T>(boxed: *mut T) -> Option<Box<T>> {
    // SAFETY: the caller's.
    (!boxed.is_null()).then(|| unsafe { Box::from_raw(boxed) })
}

/// # Safety
/// `writer` is null, or of bi_write; nobody uses it beside.
unsafe fn writing<'a>(writer: *mut bi_writer) -> Done<&'a mut bi_writer> {
    // SAFETY: the caller's.
    let writer = unsafe { writer.as_mut() };
    writer.ok_or_else(|| Failed::argument("the writer is NULL"))
}
