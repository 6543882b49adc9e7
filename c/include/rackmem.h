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
 Maps a region of coherent memory: other nodes and processes may use it meanwhile, mapped or by
 calls. Use atomics, or what else is right for memory that processes share. Where a page's block
 has died with its node, a load or a store of it ends the process by SIGBUS,
 as one of a file that was cut off does.

 # Safety
 `region` is a handle, `out` may be written.
 */
rm_status rm_map(const rm_region *region, rm_pages **out);

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
