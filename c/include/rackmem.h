/* rackmem for C and C++: one memory for a rack of machines.
 *
 * A test holds that it declares what the library has (c/tests/header.rs).
 *
 * Every function returns RM_OK (0), what it has to tell beside success (above 0), or why it has
 * failed (below 0); rm_why() has the text then. What a handle is of is freed by the function that
 * ends in _free or _close, once; NULL is no handle, and freeing it does nothing. Any thread may use
 * any handle, several at a time, unless a function says otherwise. A child by fork() may use none.
 * No function can be called from a handler of a signal. */


#ifndef RACKMEM_H
#define RACKMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 rm_lock_acquire waits as long as it takes.
 */
#define RM_FOREVER -1

/*
 The version of the binary interface: a program that was compiled with another
 `RM_ABI_VERSION` than `rm_abi_version()` returns must not go on.
 */
#define RM_ABI_VERSION 0

/*
 What a function has done.
 */
typedef enum {
  /*
   What was asked for.
   */
  RM_OK = 0,
  /*
   Nothing: the time was over before the lock was free, the word had another value, or the
   object had another version.
   */
  RM_NOT_NOW = 1,
  /*
   The lock is held, and who had it last died with it: look at what it protects.
   */
  RM_OWNER_DIED = 2,
  /*
   Nothing has this name.
   */
  RM_NOT_FOUND = -1,
  /*
   What is there is something else: of another size, type or contract.
   */
  RM_MISMATCH = -2,
  /*
   What was asked for cannot be, or a pointer is NULL.
   */
  RM_ARGUMENT = -3,
  /*
   The rack has no room left for this.
   */
  RM_FULL = -4,
  /*
   A node or a majority has not answered in the rack's patience.
   */
  RM_NO_ANSWER = -5,
  /*
   It has died with the node that had it, or has been removed or freed.
   */
  RM_LOST = -6,
  /*
   The rack is closed here, or goes on without this process.
   */
  RM_CLOSED = -7,
  /*
   The system does not let this process map memory of the rack.
   */
  RM_NO_PAGING = -8,
  /*
   The process is a child by fork() of the one that the handle is of.
   */
  RM_FORKED = -9,
  /*
   Anything else: rm_why_code() says which.
   */
  RM_OTHER = -10,
  /*
   A fault of the library. What the handle is of may be in any state: close the rack.
   */
  RM_FAULT = -11,
  /*
   What was read may be older than was promised: throw it away.
   */
  RM_STALE = -12,
} rm_status;

/*
 What a region's memory promises.
 */
typedef enum {
  /*
   Every load sees the last store, of whichever node: FlowCC.
   */
  RM_COHERENT = 0,
  /*
   Whole objects are read and written: SABRes.
   */
  RM_OBJECT = 2,
  /*
   A majority of copies has every line that was written: ABD.
   */
  RM_REPLICATED = 4,
} rm_contract;

/*
 How faults of mapped memory come to the library.
 */
typedef enum {
  /*
   As SIGBUS to the thread that has one: the fastest.
   */
  RM_FAULTS_SIGNAL = 0,
  /*
   To threads of the library: threads may block signals, and where the process may have faults
   of system calls these wait for pages.
   */
  RM_FAULTS_THREAD = 1,
  /*
   As SIGSEGV to the thread that has one, where there is no userfaultfd.
   */
  RM_FAULTS_MPROTECT = 2,
} rm_faults;

/*
 What copies survive.
 */
typedef enum {
  /*
   The end of fewer than half of them.
   */
  RM_MEMORY = 0,
  /*
   The end of all processes, and no restart of a machine.
   */
  RM_FILE = 1,
  /*
   Power failures of all machines.
   */
  RM_SYNC = 2,
} rm_durability;

/*
 An arena: objects in a file or a device that all nodes have mapped.
 */
typedef struct bi_arena bi_arena;

/*
 A section that is open, of one thread.
 */
typedef struct bi_section bi_section;

/*
 One writer of the rack, of one thread.
 */
typedef struct bi_writer bi_writer;

/*
 A condition that threads of all nodes wait for.
 */
typedef struct rm_condition rm_condition;

/*
 A lock that one thread of all nodes has at a time.
 */
typedef struct rm_lock rm_lock;

/*
 A node of a rack: what memory is used through.
 */
typedef struct rm_node rm_node;

/*
 An object in a region under RM_OBJECT.
 */
typedef struct rm_object rm_object;

/*
 A region's bytes at addresses of this process.
 */
typedef struct rm_pages rm_pages;

/*
 A rack in this process, or this process' part of one.
 */
typedef struct rm_rack rm_rack;

/*
 A named region.
 */
typedef struct rm_region rm_region;

/*
 A lock that many threads of all nodes have for reading, or one for writing.
 */
typedef struct rm_rwlock rm_rwlock;

/*
 A run of a transaction, as long as its body runs, and in its thread.
 */
typedef struct rm_transaction rm_transaction;

/*
 Says what becomes of a load or a store whose block cannot be had: where in the region, whether
 it is a store, and why, as rm_why() says too. true: it is tried again; false: the reason is
 printed, and the thread gets the signal. It runs in the thread that loads or stores, or in one
 of the library (RM_FAULTS_THREAD), may call this library, and must not touch the mapping.
 */
typedef bool (*rm_lost)(void *context, size_t at, bool stores, rm_status why);

/*
 Says which object a program drops itself, with the context that bi_stale_object_quiescent was
 given: puts a pointer to it where its second argument leads. false: there is no more. It must
 not call this library.
 */
typedef bool (*bi_next)(void *context, uint64_t *pointer);

/*
 What a transaction does, with the context that rm_transact was given. RM_OK: it is to take
 effect. Anything else: it is given up. It may run several times, if others come first: what it
 changes beside objects it has to change anew each time. It must return, not jump or throw.
 */
typedef rm_status (*rm_body)(rm_transaction *run, void *context);

/*
 Where an arena is, how large, and how old what is read may be: the same on all nodes. Zeros
 where a field says so.
 */
typedef struct {
  /*
   A device, or a file of a memory that machines share, or of /dev/shm.
   */
  const char *path;
  /*
   Bytes, from the beginning on.
   */
  uint64_t bytes;
  /*
   How old what a section reads may be when it begins, in microseconds, 5000 at least; 0: 10000.
   */
  uint64_t bound;
  /*
   Entries of a ring, 2 to 4096; 0: 4096.
   */
  uint64_t ring;
  /*
   Each process has a cache of its own in front, which nothing keeps coherent: for tests on
   one host.
   */
  bool emulated;
} bi_spec;

/*
 What another node finds an object by. Any program may keep it, in memory or on disk.
 */
typedef struct {
  /*
   Where it is.
   */
  uint64_t addr;
  /*
   Which of those that have been there.
   */
  uint32_t generation;
} rm_object_ref;

/*
 A region as a program wants it. Zeros mean what is usual; `bytes` and `name` must be there.
 */
typedef struct {
  /*
   1 to 88 bytes.
   */
  const char *name;
  /*
   Bytes.
   */
  size_t bytes;
  /*
   What its elements are, in any number that all who use it agree on.
   */
  uint64_t element;
  /*
   One of rm_contract.
   */
  int32_t contract;
  /*
   1 to 7 nodes that keep a copy, an odd number. 0: one.
   */
  uint8_t copies;
  /*
   Coherent memory with copies: a write returns when a majority has it.
   */
  bool writes_survive;
  /*
   One of rm_durability, where it has copies.
   */
  int32_t durability;
  /*
   RM_REPLICATED: bytes of a line, a power of two from 64 to 65536. 0: 4096.
   */
  uint32_t line;
} rm_region_spec;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The lock of this name, made if there is none.

 # Safety
 `node` is a handle, `lock` a string that ends with a zero, `out` may be written.
 */
rm_status rm_lock_open(const rm_node *node, const char *lock, rm_lock **out);

/*
 Waits for the lock at most so many milliseconds, or RM_FOREVER. RM_NOT_NOW: it is not free.
 RM_OWNER_DIED: it is held, and a node that had it died inside. `token`, unless NULL, gets a
 number that rises with each holder of another node: who has a lower one has lost the lock.

 # Safety
 `lock` is a handle; `token` is NULL or may be written.
 */
rm_status rm_lock_acquire(const rm_lock *lock, int64_t milliseconds, uint64_t *token);

/*
 Lets the next one in. Any thread may, of the process that has it by this handle.

 # Safety
 `lock` is a handle.
 */
rm_status rm_lock_release(const rm_lock *lock);

/*
 Ends the handle; a lock that is held by it is released.

 # Safety
 `lock` is NULL or of this library, and not used again.
 */
void rm_lock_free(rm_lock *lock);

/*
 The lock of this name, made if there is none.

 # Safety
 `node` is a handle, `lock` a string that ends with a zero, `out` may be written.
 */
rm_status rm_rwlock_open(const rm_node *node, const char *lock, rm_rwlock **out);

/*
 Waits to read beside other readers, at most so many milliseconds, or RM_FOREVER. Several threads
 may, by one handle. RM_NOT_NOW and RM_OWNER_DIED as of rm_lock_acquire.

 # Safety
 `lock` is a handle.
 */
rm_status rm_rwlock_read(const rm_rwlock *lock, int64_t milliseconds);

/*
 Waits to be alone in it, at most so many milliseconds, or RM_FOREVER. RM_NOT_NOW, RM_OWNER_DIED
 and `token` as of rm_lock_acquire.

 # Safety
 `lock` is a handle; `token` is NULL or may be written.
 */
rm_status rm_rwlock_write(const rm_rwlock *lock, int64_t milliseconds, uint64_t *token);

/*
 Ends what this handle has begun: the writing, or one of the readings. Any thread of the process
 may.

 # Safety
 `lock` is a handle.
 */
rm_status rm_rwlock_release(const rm_rwlock *lock);

/*
 Ends the handle; what is held by it is released.

 # Safety
 `lock` is NULL or of this library, and not used again.
 */
void rm_rwlock_free(rm_rwlock *lock);

/*
 The condition of this name, made if there is none.

 # Safety
 `node` is a handle, `condition` a string that ends with a zero, `out` may be written.
 */
rm_status rm_condition_open(const rm_node *node, const char *condition, rm_condition **out);

/*
 Lets a lock go that is held, waits to be notified, at most so many milliseconds or RM_FOREVER,
 and holds the lock again. RM_NOT_NOW: the time was over. RM_OWNER_DIED: a node that had the lock
 died inside meanwhile. After a failure the lock is not held. A thread may wake without being
 notified: look again at what it waits for. At most 255 threads of the rack wait for one
 condition.

 # Safety
 Both are handles.
 */
rm_status rm_condition_wait(const rm_condition *condition,
                            const rm_lock *lock,
                            int64_t milliseconds);

/*
 Wakes the thread that has waited longest. Whoever changes what it waits for holds the lock.
 `woken`, unless NULL, says whether one waited.

 # Safety
 `condition` is a handle; `woken` is NULL or may be written.
 */
rm_status rm_condition_notify_one(const rm_condition *condition, bool *woken);

/*
 Wakes all who wait.

 # Safety
 `condition` is a handle.
 */
rm_status rm_condition_notify_all(const rm_condition *condition);

/*
 Ends the handle, not the condition.

 # Safety
 `condition` is NULL or of this library, and not used again.
 */
void rm_condition_free(rm_condition *condition);

/*
 A new object with these bytes, and room for as many as `room`, at most 65520.

 # Safety
 `region` is a handle, `len` bytes may be read at `from`, `out` may be written.
 */
rm_status rm_object_new(const rm_region *region,
                        const void *from,
                        size_t len,
                        size_t room,
                        rm_object **out);

/*
 An object that some node has made.

 # Safety
 `node` is a handle, `out` may be written.
 */
rm_status rm_object_attach(const rm_node *node, rm_object_ref at, rm_object **out);

/*
 What another node finds it by.

 # Safety
 `object` is a handle; `at` may be written.
 */
rm_status rm_object_at(const rm_object *object, rm_object_ref *at);

/*
 Reads all of it, from one write. `len` is how many bytes have room at `into`, and then how many
 it has: with fewer of room this fails by RM_ARGUMENT, and `len` says how many are needed.
 `version`, unless NULL, gets a number that rises with every write.

 # Safety
 `object` is a handle; `*len` bytes may be written at `into`; `len` may be read and written;
 `version` is NULL or may be written.
 */
rm_status rm_object_read(const rm_object *object, void *into, size_t *len, uint64_t *version);

/*
 Replaces it. `version`, unless NULL, gets the version that it has then.

 # Safety
 `object` is a handle; `len` bytes may be read at `from`; `version` is NULL or may be written.
 */
rm_status rm_object_write(const rm_object *object, const void *from, size_t len, uint64_t *version);

/*
 Replaces it if it has this version still, and tells the new one. RM_NOT_NOW: it has another one,
 which `version` gets.

 # Safety
 `object` is a handle; `len` bytes may be read at `from`; `version` may be read and written.
 */
rm_status rm_object_write_if(const rm_object *object,
                             uint64_t *version,
                             const void *from,
                             size_t len);

/*
 Frees the object for all nodes, whose handles say RM_LOST then, and ends this handle.

 # Safety
 `object` is NULL or of this library, and not used again.
 */
rm_status rm_object_remove(rm_object *object);

/*
 Ends the handle, not the object.

 # Safety
 `object` is NULL or of this library, and not used again.
 */
void rm_object_free(rm_object *object);

/*
 Runs `body` until all that it reads and writes is one step among all nodes' transactions and
 reads, or gives up: what `body` returned last, or why it has not taken effect. RM_NO_ANSWER with
 the code "conflict": others came first each time, for as long as the rack's patience.

 # Safety
 `node` is a handle; `body` may be called with `context`.
 */
rm_status rm_transact(const rm_node *node, rm_body body, void *context);

/*
 Reads an object as it was when this run read it first, or as this run has written it; `len` and
 `version` as of rm_object_read. `version` is 0 when the run has only written it.

 # Safety
 `run` is what the body got; the rest as for rm_object_read.
 */
rm_status rm_transaction_read(rm_transaction *run,
                              const rm_object *object,
                              void *into,
                              size_t *len,
                              uint64_t *version);

/*
 Replaces an object when the transaction takes effect, and not before. A transaction has at most
 64 objects, and writes at most a MiB, and of that at most 63,984 bytes to objects with copies.

 # Safety
 `run` is what the body got; `object` is a handle; `len` bytes may be read at `from`.
 */
rm_status rm_transaction_write(rm_transaction *run,
                               const rm_object *object,
                               const void *from,
                               size_t len);

/*
 Makes an arena and attaches it; only one node may, at a time. RM_OTHER with the code "is-there":
 there is one.

 # Safety
 `node` is a handle; `spec` may be read, and its path ends with a zero; `out` may be written.
 */
rm_status bi_create(const rm_node *node, const bi_spec *spec, bi_arena **out);

/*
 Attaches the arena that is there. A node has it once.

 # Safety
 As for bi_create.
 */
rm_status bi_open(const rm_node *node, const bi_spec *spec, bi_arena **out);

/*
 Ends the handle. The node leaves the arena when the sections and writers of it have ended, too.

 # Safety
 `arena` is NULL or of this library, and not used again.
 */
void bi_close(bi_arena *arena);

/*
 A slot, which is a place for a pointer: one of the 64 that programs find by their numbers.

 # Safety
 `arena` is a handle, `slot` may be written.
 */
rm_status bi_root(const bi_arena *arena, uint64_t nth, uint64_t *slot);

/*
 The slot that is the word at this byte, a multiple of 8, of the object that a pointer leads to.

 # Safety
 `slot` may be written.
 */
rm_status bi_field(uint64_t pointer, size_t at, uint64_t *slot);

/*
 Begins a section: what it reads was current at most the bound ago. If this node is late, it
 quiesces first. RM_STALE: that has taken too long.

 # Safety
 `arena` is a handle, `out` may be written.
 */
rm_status bi_enter(const bi_arena *arena, bi_section **out);

/*
 Ends a section, whose pointers are good no longer. RM_STALE: it has lasted too long, or the
 process has slept in it, and what it has read is to be thrown away.

 # Safety
 `section` is of bi_enter, and not used again.
 */
rm_status bi_exit(bi_section *section);

/*
 From now on the section looks past the cache, for what was added just now; or no longer.

 # Safety
 `section` is of bi_enter.
 */
rm_status bi_look_lazily(bi_section *section, bool lazily);

/*
 What a slot leads to: a pointer, which is good in this section; 0: nothing.

 # Safety
 `section` is of bi_enter, `pointer` may be written.
 */
rm_status bi_load(const bi_section *section, uint64_t slot, uint64_t *pointer);

/*
 Copies bytes of an object, from a multiple of 8 on. What the section reads may be anything,
 never a fault, until bi_exit says RM_OK.

 # Safety
 `section` is of bi_enter; `len` bytes may be written at `into`.
 */
rm_status bi_dereference(const bi_section *section,
                         uint64_t pointer,
                         size_t at,
                         void *into,
                         size_t len);

/*
 Waits for a lock of the rack, and writes under it until bi_written. All who write one object, or
 one slot, do so under one lock, which this takes by itself.

 # Safety
 `arena` and `lock` are handles, `out` may be written.
 */
rm_status bi_write(const bi_arena *arena, const rm_lock *lock, bi_writer **out);

/*
 Ends the writing, and lets the next writer in. Objects of bi_alloc that were not put in place
 are lost.

 # Safety
 `writer` is NULL or of bi_write, and not used again.
 */
void bi_written(bi_writer *writer);

/*
 What a slot leads to now, past all caches; 0: nothing.

 # Safety
 `writer` is of bi_write, `pointer` may be written.
 */
rm_status bi_writer_load(bi_writer *writer, uint64_t slot, uint64_t *pointer);

/*
 Copies bytes of an object as they are now, from a multiple of 8 on.

 # Safety
 `writer` is of bi_write; `len` bytes may be written at `into`.
 */
rm_status bi_writer_read(bi_writer *writer, uint64_t pointer, size_t at, void *into, size_t len);

/*
 A new object that begins with these bytes and has room for `room`, 65536 at most; the rest is
 zeros. Nothing leads to it before bi_assign_pointer, which takes its number.

 # Safety
 `writer` is of bi_write; `len` bytes may be read at `from`; `object` may be written.
 */
rm_status bi_alloc(bi_writer *writer, const void *from, size_t len, size_t room, uint64_t *object);

/*
 Puts a new object in place: readers see what was there, or all of this. `old`, unless NULL, gets
 the pointer to what was there, which is the caller's to free, or 0.

 # Safety
 `writer` is of bi_write; `old` is NULL or may be written.
 */
rm_status bi_assign_pointer(bi_writer *writer, uint64_t slot, uint64_t object, uint64_t *old);

/*
 The same for a slot whose modifications nobody is told of: readers see it when they drop the
 object that the slot is in by bi_stale_object_quiescent, or read past the cache, or by chance.
 What was there is freed by the process that has replaced it, which tells all of the slot first.

 # Safety
 As for bi_assign_pointer.
 */
rm_status bi_assign_own(bi_writer *writer, uint64_t slot, uint64_t object, uint64_t *old);

/*
 Leads a slot to an object that is in place elsewhere, or by 0 to nothing; `old` as of
 bi_assign_pointer.

 # Safety
 `writer` is of bi_write; `old` is NULL or may be written.
 */
rm_status bi_lead(bi_writer *writer, uint64_t slot, uint64_t pointer, uint64_t *old);

/*
 Changes the word at this byte, a multiple of 8, of an object that is in place: readers see the
 old word or the new one.

 # Safety
 `writer` is of bi_write.
 */
rm_status bi_set(bi_writer *writer, uint64_t pointer, size_t at, uint64_t word);

/*
 An object that nothing leads to any more is not used: its memory is given out again when no node
 can read it. Waits, if too much is waiting for that. RM_OTHER with the code "ring-full": other
 nodes have not quiesced for as long as the rack's patience, and it is not freed.

 # Safety
 `writer` is of bi_write.
 */
rm_status bi_free(bi_writer *writer, uint64_t pointer);

/*
 Drops what others have modified until now: sections that begin after this see what was assigned
 before it.

 # Safety
 `arena` is a handle.
 */
rm_status bi_quiesce(const bi_arena *arena);

/*
 Drops what is left in this node's cache of objects that were freed until now, and what others
 have modified: bi_quiesce, by the paper's name.

 # Safety
 `arena` is a handle.
 */
rm_status bi_free_object_quiescent(const bi_arena *arena);

/*
 The same, and drops the objects that `next` says, whose modifications nobody is told of. NULL:
 there are none. RM_ARGUMENT with the code "bad-pointer", or "bad-argument" for a 0: nothing is
 dropped.

 # Safety
 `arena` is a handle; `next` is NULL or a function that may be called with `context`.
 */
rm_status bi_stale_object_quiescent(const bi_arena *arena, bi_next next, void *context);

/*
 Makes memory that was freed free, as far as no cache can hold it; `count`, unless NULL, gets
 the number of objects. A thread does the same at each tick.

 # Safety
 `arena` is a handle; `count` is NULL or may be written.
 */
rm_status bi_reclaim(const bi_arena *arena, size_t *count);

/*
 The tick, a fifth of the bound, since when all live nodes have dropped what was modified. Never
 waits.

 # Safety
 `arena` is a handle; `tick` may be written.
 */
rm_status synchronize_bi(const bi_arena *arena, uint64_t *tick);

/*
 Maps a region of coherent memory: other nodes and processes may use it meanwhile, mapped or by
 calls. Use atomics, or what else is right for memory that processes share. Where a page's block
 has died with its node, a load or a store of it ends the process by SIGBUS,
 as one of a file that was cut off does; rm_on_lost asks the program.

 # Safety
 `region` is a handle, `out` may be written.
 */
rm_status rm_map(const rm_region *region, rm_pages **out);

/*
 The same with faults that come in one of the ways of rm_faults. A region that a node has mapped
 once keeps its way.

 # Safety
 `region` is a handle, `out` may be written.
 */
rm_status rm_map_with(const rm_region *region, int32_t faults, rm_pages **out);

/*
 Where the first byte is, and in `len`, unless NULL, how many there are. NULL where `pages` is
 none.

 # Safety
 `pages` is NULL or a handle; `len` is NULL or may be written.
 */
void *rm_pages_at(const rm_pages *pages, size_t *len);

/*
 Brings pages of bytes, for stores too if wanted: system calls that follow find them, unless
 another node takes them first.

 # Safety
 `pages` is a handle.
 */
rm_status rm_pages_touch(const rm_pages *pages, size_t at, size_t len, bool stores);

/*
 Brings pages of bytes, for stores too if wanted, and keeps them, so that system calls find them:
 other nodes wait, for a second at most from the first pin of a page on. So pin for one call at a
 time, and undo it with rm_unpin. RM_OTHER with the code "too-many-pinned": nothing is pinned.

 # Safety
 `pages` is a handle.
 */
rm_status rm_pin(const rm_pages *pages, size_t at, size_t len, bool stores);

/*
 Undoes one rm_pin of the same bytes, with the same `stores`.

 # Safety
 `pages` is a handle.
 */
rm_status rm_unpin(const rm_pages *pages, size_t at, size_t len, bool stores);

/*
 From now on `handler` is asked about loads and stores of this mapping whose block cannot be had,
 by any handle on it. NULL: nobody is.

 # Safety
 `pages` is a handle. Until the rack is closed or another handler takes its place, `handler` may
 be called with `context` in any thread that loads or stores there.
 */
rm_status rm_on_lost(const rm_pages *pages, rm_lost handler, void *context);

/*
 Ends the mapping: what was changed goes home. Nobody may use its addresses any more.

 # Safety
 `pages` is NULL or of this library, and not used again.
 */
rm_status rm_unmap(rm_pages *pages);

/*
 A rack of so many nodes, all in this process, each with `memory` bytes for the rack and `cache`
 bytes of cache; 0: as many as it has by default.

 # Safety
 `out` may be written.
 */
rm_status rm_local(size_t nodes, uint64_t memory, size_t cache, rm_rack **out);

/*
 Joins the rack that a file describes, as one of its nodes.

 # Safety
 `config` is a string that ends with a zero; `out` may be written.
 */
rm_status rm_join(const char *config, size_t node, rm_rack **out);

/*
 Joins as the environment says: RACKMEM_CONFIG is the rack's file, and RACKMEM_NODE the node, or
 the rank that Slurm, MPI or an indexed job of Kubernetes has given, or the ordinal at the end of
 the host's name.

 # Safety
 `out` may be written.
 */
rm_status rm_from_env(rm_rack **out);

/*
 Leaves the rack: what this process has changed goes home first, and locks that it has used;
 memory that others have of it is lost. The rack is closed whatever this returns,
 and handles of it that are still there say RM_CLOSED.

 # Safety
 `rack` is NULL or of this library, and not used again.
 */
rm_status rm_close(rm_rack *rack);

/*
 A node that lives in this process.

 # Safety
 `rack` is a handle; `out` may be written.
 */
rm_status rm_node_open(const rm_rack *rack, size_t id, rm_node **out);

/*
 The node that this process is; of a rack that is all in this process, the first.

 # Safety
 `rack` is a handle; `out` may be written.
 */
rm_status rm_node_own(const rm_rack *rack, rm_node **out);

/*
 Ends the handle, not the node.

 # Safety
 `node` is NULL or of this library, and not used again.
 */
void rm_node_free(rm_node *node);

/*
 Which node of the rack it is, or -1 where `node` is none.

 # Safety
 `node` is NULL or a handle.
 */
int32_t rm_node_id(const rm_node *node);

/*
 How many nodes the rack has, or -1 where `node` is none.

 # Safety
 `node` is NULL or a handle.
 */
int32_t rm_node_count(const rm_node *node);

/*
 The region of this name, made if there is none. One that is there must be as it is wanted, or
 this fails by RM_MISMATCH. `created`, unless NULL, tells whether it was made.

 # Safety
 `node` is a handle, `spec` may be read, `out` may be written.
 */
rm_status rm_region_create(const rm_node *node,
                           const rm_region_spec *spec,
                           bool *created,
                           rm_region **out);

/*
 The region of this name, which must be there, as it is wanted.

 # Safety
 As for rm_region_create.
 */
rm_status rm_region_open(const rm_node *node, const rm_region_spec *spec, rm_region **out);

/*
 Ends the handle, not the region.

 # Safety
 `region` is NULL or of this library, and not used again.
 */
void rm_region_free(rm_region *region);

/*
 Removes the region of this name: its memory is free, and handles of all nodes say RM_LOST.

 # Safety
 `node` is a handle, `region` a string that ends with a zero.
 */
rm_status rm_region_remove(const rm_node *node, const char *region);

/*
 Address of the region's first byte in the rack, the same at all nodes; 0 where `region` is none.

 # Safety
 `region` is NULL or a handle.
 */
uint64_t rm_region_addr(const rm_region *region);

/*
 Its bytes; 0 where `region` is none.

 # Safety
 `region` is NULL or a handle.
 */
size_t rm_region_bytes(const rm_region *region);

/*
 Reads `len` bytes from byte `at` of the region on. What lies in one block is of one moment, and
 with copies what lies in one line.

 # Safety
 `region` is a handle, and `len` bytes may be written at `into`.
 */
rm_status rm_read(const rm_region *region, size_t at, void *into, size_t len);

/*
 Writes `len` bytes from byte `at` of the region on; with RM_REPLICATED whole lines.

 # Safety
 `region` is a handle, and `len` bytes may be read at `from`.
 */
rm_status rm_write(const rm_region *region, size_t at, const void *from, size_t len);

/*
 The version of the binary interface that the library has: RM_ABI_VERSION of its header.
 */
uint32_t rm_abi_version(void);

/*
 The text of this thread's last failure: what has happened; whether anything has changed; what to
 do. It lasts until the thread's next failure. Empty: there was none.
 */
const char *rm_why(void);

/*
 The cause of this thread's last failure in a word that stays the same in later versions.
 */
const char *rm_why_code(void);

/*
 What a status is called.
 */
const char *rm_status_name(int status);

/*
 The word at byte `at`, a multiple of 8.

 # Safety
 `region` is a handle; `value` is NULL or may be written.
 */
rm_status rm_load(const rm_region *region, size_t at, uint64_t *value);

/*
 Stores a word.

 # Safety
 `region` is a handle.
 */
rm_status rm_store(const rm_region *region, size_t at, uint64_t value);

/*
 Adds to a word, wrapping; `before`, unless NULL, gets what it was.

 # Safety
 `region` is a handle; `before` is NULL or may be written.
 */
rm_status rm_fetch_add(const rm_region *region, size_t at, uint64_t n, uint64_t *before);

/*
 Puts `desired` where `*expected` is. RM_NOT_NOW: there is something else,
 which `*expected` gets.

 # Safety
 `region` is a handle; `expected` may be read and written.
 */
rm_status rm_compare_exchange(const rm_region *region,
                              size_t at,
                              uint64_t *expected,
                              uint64_t desired);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RACKMEM_H */
