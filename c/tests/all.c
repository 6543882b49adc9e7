/* Every function of the library, in one process. */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L

#include <rackmem.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 65536u

static int checks;

#define CHECK(what)                                                                   \
	do {                                                                              \
		checks++;                                                                     \
		if (!(what)) {                                                                \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, rm_why());   \
			exit(1);                                                                  \
		}                                                                             \
	} while (0)

#define DONE(call) CHECK((call) == RM_OK)

/* It fails so, with a text of three parts and a word. */
static void fails(rm_status found, rm_status wanted, const char *code, int line)
{
	checks++;
	const char *first = strstr(rm_why(), "; ");
	if (found != wanted || strcmp(rm_why_code(), code) != 0 || !first || !strstr(first + 2, "; ")) {
		fprintf(stderr, "line %d: %s %s: %s\n", line, rm_status_name(found), rm_why_code(), rm_why());
		exit(1);
	}
}
#define FAILS(call, status, code) fails((call), (status), (code), __LINE__)

static rm_rack *rack;
static rm_node *nodes[2];

static rm_region_spec coherent(const char *name)
{
	rm_region_spec spec = {.name = name, .bytes = BYTES, .element = 7};
	return spec;
}

static void racks_and_nodes(void)
{
	CHECK(rm_abi_version() == RM_ABI_VERSION);
	DONE(rm_local(2, 0, 0, &rack));
	for (size_t id = 0; id < 2; id++) {
		DONE(rm_node_open(rack, id, &nodes[id]));
		CHECK(rm_node_id(nodes[id]) == (int32_t)id && rm_node_count(nodes[id]) == 2);
	}
	rm_node *own = NULL, *none = NULL;
	DONE(rm_node_own(rack, &own));
	CHECK(rm_node_id(own) == 0);
	rm_node_free(own);
	FAILS(rm_node_open(rack, 2, &none), RM_ARGUMENT, "no-such-node");
	CHECK(none == NULL);
	rm_rack *other = NULL;
	FAILS(rm_local(0, 0, 0, &other), RM_ARGUMENT, "config");
	FAILS(rm_local(33, 0, 0, &other), RM_ARGUMENT, "config");
	CHECK(strstr(rm_why(), "32 nodes"));
	FAILS(rm_join("no-such-file.toml", 0, &other), RM_ARGUMENT, "config");
	FAILS(rm_join(NULL, 0, &other), RM_ARGUMENT, "bad-argument");
	unsetenv("RACKMEM_CONFIG");
	FAILS(rm_from_env(&other), RM_ARGUMENT, "config");
	FAILS(rm_local(1, 0, 0, NULL), RM_ARGUMENT, "bad-argument");
	CHECK(rm_node_id(NULL) == -1 && rm_node_count(NULL) == -1);
	rm_node_free(NULL);
	DONE(rm_close(NULL));
}

static void regions_and_words(void)
{
	rm_region_spec spec = coherent("table");
	rm_region *here = NULL, *there = NULL, *none = NULL;
	bool created = false;
	FAILS(rm_region_open(nodes[0], &spec, &none), RM_NOT_FOUND, "name-not-found");
	DONE(rm_region_create(nodes[0], &spec, &created, &here));
	CHECK(created);
	DONE(rm_region_create(nodes[1], &spec, &created, &there));
	CHECK(!created && rm_region_addr(here) == rm_region_addr(there));
	CHECK(rm_region_bytes(there) == BYTES);

	rm_region_spec longer = spec;
	longer.bytes = 2 * BYTES;
	FAILS(rm_region_open(nodes[1], &longer, &none), RM_MISMATCH, "name-mismatch");
	longer.contract = 1;
	FAILS(rm_region_open(nodes[1], &longer, &none), RM_ARGUMENT, "bad-argument");
	longer.name = "\xff";
	longer.contract = RM_COHERENT;
	FAILS(rm_region_open(nodes[1], &longer, &none), RM_ARGUMENT, "bad-argument");

	char text[] = "all machines", read[sizeof text];
	DONE(rm_write(here, 4090, text, sizeof text));
	DONE(rm_read(there, 4090, read, sizeof read));
	CHECK(memcmp(text, read, sizeof text) == 0);
	FAILS(rm_read(there, BYTES - 1, read, 2), RM_ARGUMENT, "region-out-of-bounds");
	FAILS(rm_read(there, 0, NULL, 2), RM_ARGUMENT, "bad-argument");
	DONE(rm_read(there, 0, NULL, 0));

	uint64_t value = 1, expected = 5;
	DONE(rm_store(here, 8, 5));
	DONE(rm_fetch_add(there, 8, 2, &value));
	CHECK(value == 5);
	CHECK(rm_compare_exchange(here, 8, &expected, 1) == RM_NOT_NOW && expected == 7);
	DONE(rm_compare_exchange(here, 8, &expected, 9));
	DONE(rm_load(there, 8, &value));
	CHECK(value == 9);
	FAILS(rm_load(there, 9, &value), RM_ARGUMENT, "bad-argument");
	FAILS(rm_store(there, BYTES, 1), RM_ARGUMENT, "bad-argument");
	FAILS(rm_store(NULL, 0, 1), RM_ARGUMENT, "bad-argument");

	DONE(rm_region_remove(nodes[1], "table"));
	FAILS(rm_write(here, 0, text, 1), RM_LOST, "region-removed");
	rm_region_free(here);
	rm_region_free(there);
}

struct worker {
	int node;
	_Atomic uint64_t *word;
};

static void *counts(void *argument)
{
	struct worker *worker = argument;
	for (int i = 0; i < 20000; i++)
		atomic_fetch_add(worker->word, 1);
	return NULL;
}

static bool give_up(void *context, size_t at, bool stores, rm_status why)
{
	(void)at, (void)stores, (void)why;
	*(int *)context += 1;
	return false;
}

/* System calls find pages that another node has changed once they are pinned, and not before. */
static void pinned(rm_pages *pages[2])
{
	unsigned char *here = rm_pages_at(pages[0], NULL), *there = rm_pages_at(pages[1], NULL);
	int ends[2], asked = 0;
	CHECK(pipe(ends) == 0);
	for (int round = 0; round < 10; round++) {
		there[100] = 'a' + round;
		errno = 0;
		CHECK(write(ends[1], here + 100, 1) == -1 && errno == EFAULT);
		DONE(rm_pin(pages[0], 100, 1, false));
		CHECK(write(ends[1], here + 100, 1) == 1);
		DONE(rm_unpin(pages[0], 100, 1, false));
		DONE(rm_pin(pages[0], 200, 1, true));
		CHECK(read(ends[0], here + 200, 1) == 1);
		DONE(rm_unpin(pages[0], 200, 1, true));
		CHECK(there[200] == 'a' + round);
	}
	FAILS(rm_pin(pages[0], 1, BYTES, true), RM_ARGUMENT, "region-out-of-bounds");
	FAILS(rm_unpin(pages[0], BYTES + 1, 0, true), RM_ARGUMENT, "region-out-of-bounds");
	DONE(rm_on_lost(pages[0], give_up, &asked));
	there[100] = 'z';
	CHECK(here[100] == 'z' && asked == 0);
	DONE(rm_on_lost(pages[0], NULL, NULL));
	close(ends[0]);
	close(ends[1]);
}

static void mapped_memory(void)
{
	rm_region_spec spec = coherent("mapped");
	rm_region *regions[2];
	rm_pages *pages[2];
	struct worker workers[2];
	pthread_t threads[2];
	for (int node = 0; node < 2; node++) {
		DONE(rm_region_create(nodes[node], &spec, NULL, &regions[node]));
		DONE(rm_map(regions[node], &pages[node]));
		size_t len = 0;
		_Atomic uint64_t *at = rm_pages_at(pages[node], &len);
		CHECK(at != NULL && len == BYTES);
		workers[node] = (struct worker){node, at};
	}
	for (int node = 0; node < 2; node++)
		CHECK(pthread_create(&threads[node], NULL, counts, &workers[node]) == 0);
	for (int node = 0; node < 2; node++)
		CHECK(pthread_join(threads[node], NULL) == 0);
	uint64_t total = 0;
	DONE(rm_load(regions[0], 0, &total));
	CHECK(total == 40000);
	DONE(rm_pages_touch(pages[1], 0, BYTES, true));
	FAILS(rm_pages_touch(pages[1], 1, BYTES, true), RM_ARGUMENT, "region-out-of-bounds");
	CHECK(rm_pages_at(NULL, NULL) == NULL);
	pinned(pages);
	for (int node = 0; node < 2; node++) {
		DONE(rm_unmap(pages[node]));
		rm_region_free(regions[node]);
	}
}

/* Each way for faults to come; a node keeps the first one of a region. */
static void ways_of_faults(void)
{
	static const rm_faults ways[] = {RM_FAULTS_SIGNAL, RM_FAULTS_THREAD, RM_FAULTS_MPROTECT};
	static const char *names[] = {"by signal", "by thread", "by mprotect"};
	for (int way = 0; way < 3; way++) {
		rm_region_spec spec = coherent(names[way]);
		rm_region *regions[2];
		rm_pages *pages[2], *other = NULL;
		_Atomic uint64_t *words[2];
		for (int node = 0; node < 2; node++) {
			DONE(rm_region_create(nodes[node], &spec, NULL, &regions[node]));
			DONE(rm_map_with(regions[node], ways[way], &pages[node]));
			words[node] = rm_pages_at(pages[node], NULL);
		}
		for (int round = 0; round < 100; round++)
			CHECK(atomic_fetch_add(words[round % 2], 1) == (uint64_t)round);
		FAILS(rm_map_with(regions[0], ways[(way + 1) % 3], &other), RM_NO_PAGING, "not-mappable");
		FAILS(rm_map_with(regions[0], 3, &other), RM_ARGUMENT, "bad-argument");
		for (int node = 0; node < 2; node++) {
			DONE(rm_unmap(pages[node]));
			rm_region_free(regions[node]);
		}
	}
}

static void *stores_with_signals_blocked(void *word)
{
	sigset_t all;
	sigfillset(&all);
	CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
	atomic_store((_Atomic uint64_t *)word, 7);
	return NULL;
}

/* A thread may block all signals where threads of the library handle its faults. */
static void blocked_signals(void)
{
	rm_region_spec spec = coherent("blocked");
	rm_region *region;
	rm_pages *pages;
	pthread_t thread;
	uint64_t value = 0;
	DONE(rm_region_create(nodes[0], &spec, NULL, &region));
	DONE(rm_map_with(region, RM_FAULTS_THREAD, &pages));
	CHECK(pthread_create(&thread, NULL, stores_with_signals_blocked, rm_pages_at(pages, NULL)) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	DONE(rm_load(region, 0, &value));
	CHECK(value == 7);
	DONE(rm_unmap(pages));
	rm_region_free(region);
}

/* The system refuses userfaultfd, as filters of containers do. */
static void without_userfaultfd(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	rm_region_spec spec = coherent("nowhere");
	rm_region *region;
	rm_pages *pages = NULL;
	DONE(rm_region_create(nodes[0], &spec, NULL, &region));
	FAILS(rm_map(region, &pages), RM_NO_PAGING, "no-paging");
	CHECK(strstr(rm_why(), "userfaultfd"));
	DONE(rm_map_with(region, RM_FAULTS_MPROTECT, &pages));
	atomic_fetch_add((_Atomic uint64_t *)rm_pages_at(pages, NULL), 1);
	DONE(rm_unmap(pages));
	rm_region_free(region);
}

/* The text of a failure stays where it is, whatever fails next, until the thread's end. */
static void *fails_too(void *first)
{
	rm_region *none = NULL;
	(void)rm_map(NULL, NULL);
	CHECK(strlen(rm_why()) > 0 && rm_why() != (const char *)first);
	rm_region_spec spec = coherent("nothing has this name");
	(void)rm_region_open(nodes[0], &spec, &none);
	return NULL;
}

static void texts_of_failures(void)
{
	pthread_t thread;
	char kept[1024];
	(void)rm_map(NULL, NULL);
	const char *first = rm_why();
	snprintf(kept, sizeof kept, "%s", first);
	for (int round = 0; round < 20; round++) {
		CHECK(pthread_create(&thread, NULL, fails_too, (void *)first) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(rm_why() == first && strcmp(kept, first) == 0);
	}
	/* What succeeds leaves it alone; the next failure takes its place. */
	CHECK(rm_abi_version() == RM_ABI_VERSION && strcmp(kept, first) == 0);
	(void)rm_map_with(NULL, 3, NULL);
	CHECK(rm_why() == first && strlen(first) > 0);
}

static void locks(void)
{
	rm_lock *here = NULL, *there = NULL;
	uint64_t first = 0, second = 0;
	DONE(rm_lock_open(nodes[0], "lock", &here));
	DONE(rm_lock_open(nodes[1], "lock", &there));
	FAILS(rm_lock_release(here), RM_ARGUMENT, "bad-argument");
	DONE(rm_lock_acquire(here, RM_FOREVER, &first));
	CHECK(rm_lock_acquire(there, 0, NULL) == RM_NOT_NOW);
	CHECK(rm_lock_acquire(there, 1, NULL) == RM_NOT_NOW);
	DONE(rm_lock_release(here));
	DONE(rm_lock_acquire(there, RM_FOREVER, &second));
	CHECK(second > first);
	/* Freed while it is held: released. */
	rm_lock_free(there);
	DONE(rm_lock_acquire(here, RM_FOREVER, NULL));
	DONE(rm_lock_release(here));
	rm_lock_free(here);
}

static void reader_writer_locks(void)
{
	rm_rwlock *here = NULL, *there = NULL;
	uint64_t first = 0, second = 0;
	DONE(rm_rwlock_open(nodes[0], "rwlock", &here));
	DONE(rm_rwlock_open(nodes[1], "rwlock", &there));
	FAILS(rm_rwlock_release(here), RM_ARGUMENT, "bad-argument");
	/* Two readings of one handle, and one of another node. */
	DONE(rm_rwlock_read(here, RM_FOREVER));
	DONE(rm_rwlock_read(here, RM_FOREVER));
	DONE(rm_rwlock_read(there, RM_FOREVER));
	CHECK(rm_rwlock_write(there, 1, NULL) == RM_NOT_NOW);
	DONE(rm_rwlock_release(there));
	DONE(rm_rwlock_release(here));
	CHECK(rm_rwlock_write(there, 1, NULL) == RM_NOT_NOW);
	DONE(rm_rwlock_release(here));
	DONE(rm_rwlock_write(there, RM_FOREVER, &first));
	CHECK(rm_rwlock_read(here, 1) == RM_NOT_NOW);
	DONE(rm_rwlock_release(there));
	FAILS(rm_rwlock_release(there), RM_ARGUMENT, "bad-argument");
	DONE(rm_rwlock_write(here, RM_FOREVER, &second));
	CHECK(second > first);
	/* Freed while it is held: released. */
	rm_rwlock_free(here);
	DONE(rm_rwlock_read(there, RM_FOREVER));
	rm_rwlock_free(there);
	rm_rwlock *none = NULL;
	FAILS(rm_rwlock_open(nodes[0], "lock", &none), RM_MISMATCH, "name-mismatch");
}

/* Two threads take turns: the number of turns is under the lock, in a region. */
#define TURNS 50u

struct turns {
	rm_lock *lock;
	rm_condition *condition;
	rm_region *region;
	uint64_t mine;
};

static void *takes_turns(void *argument)
{
	struct turns *me = argument;
	for (uint64_t turn = me->mine; turn < TURNS; turn += 2) {
		uint64_t now = 0;
		DONE(rm_lock_acquire(me->lock, RM_FOREVER, NULL));
		for (;;) {
			DONE(rm_load(me->region, 0, &now));
			if (now == turn)
				break;
			DONE(rm_condition_wait(me->condition, me->lock, RM_FOREVER));
		}
		DONE(rm_store(me->region, 0, turn + 1));
		DONE(rm_condition_notify_all(me->condition));
		DONE(rm_lock_release(me->lock));
	}
	return NULL;
}

static void conditions(void)
{
	rm_region_spec spec = coherent("turns");
	struct turns turns[2];
	pthread_t threads[2];
	for (int node = 0; node < 2; node++) {
		turns[node].mine = (uint64_t)node;
		DONE(rm_lock_open(nodes[node], "turns/lock", &turns[node].lock));
		DONE(rm_condition_open(nodes[node], "turns/condition", &turns[node].condition));
		DONE(rm_region_create(nodes[node], &spec, NULL, &turns[node].region));
	}
	FAILS(rm_condition_wait(turns[0].condition, turns[0].lock, 1), RM_ARGUMENT, "bad-argument");
	DONE(rm_lock_acquire(turns[0].lock, RM_FOREVER, NULL));
	CHECK(rm_condition_wait(turns[0].condition, turns[0].lock, 1) == RM_NOT_NOW);
	bool woken = true;
	DONE(rm_condition_notify_one(turns[1].condition, &woken));
	CHECK(!woken);
	DONE(rm_lock_release(turns[0].lock));
	for (int node = 0; node < 2; node++)
		CHECK(pthread_create(&threads[node], NULL, takes_turns, &turns[node]) == 0);
	for (int node = 0; node < 2; node++) {
		CHECK(pthread_join(threads[node], NULL) == 0);
		rm_lock_free(turns[node].lock);
		rm_condition_free(turns[node].condition);
		rm_region_free(turns[node].region);
	}
}

static void objects(void)
{
	rm_region_spec spec = {.name = "users", .bytes = 1 << 20, .contract = RM_OBJECT};
	rm_region *region = NULL;
	DONE(rm_region_create(nodes[0], &spec, NULL, &region));
	rm_object *here = NULL, *there = NULL;
	DONE(rm_object_new(region, "ada", 3, 100, &here));
	rm_object_ref at;
	DONE(rm_object_at(here, &at));
	DONE(rm_object_attach(nodes[1], at, &there));
	uint8_t bytes[100];
	size_t len = 2;
	uint64_t version = 0, old;
	FAILS(rm_object_read(there, bytes, &len, &version), RM_ARGUMENT, "bad-argument");
	CHECK(len == 3 && version == 0);
	DONE(rm_object_read(there, bytes, &len, &version));
	CHECK(len == 3 && memcmp(bytes, "ada", 3) == 0);
	old = version;
	DONE(rm_object_write(here, "grace", 5, &version));
	CHECK(version > old);
	CHECK(rm_object_write_if(there, &old, "x", 1) == RM_NOT_NOW);
	CHECK(old == version);
	DONE(rm_object_write_if(there, &old, "x", 1));
	CHECK(old > version);
	DONE(rm_object_remove(here));
	len = sizeof bytes;
	FAILS(rm_object_read(there, bytes, &len, NULL), RM_LOST, "gone");
	rm_object_free(there);
	rm_region_free(region);
}

/* Two accounts of two homes, whose sum stays. */
struct bank {
	rm_object *accounts[2];
	uint64_t amount;
	int runs;
};

static rm_status pays(rm_transaction *run, void *argument)
{
	struct bank *bank = argument;
	uint64_t has[2];
	bank->runs++;
	for (int at = 0; at < 2; at++) {
		size_t len = sizeof has[at];
		rm_status read = rm_transaction_read(run, bank->accounts[at], &has[at], &len, NULL);
		if (read != RM_OK)
			return read;
	}
	if (has[0] < bank->amount)
		return RM_NOT_NOW;
	has[0] -= bank->amount;
	has[1] += bank->amount;
	for (int at = 0; at < 2; at++)
		DONE(rm_transaction_write(run, bank->accounts[at], &has[at], sizeof has[at]));
	return RM_OK;
}

static void *pays_often(void *argument)
{
	for (int n = 0; n < 100; n++)
		DONE(rm_transact(nodes[n % 2], pays, argument));
	return NULL;
}

static void transactions(void)
{
	struct bank bank = {.amount = 1};
	for (int node = 0; node < 2; node++) {
		rm_region_spec spec = {.name = node ? "bank 1" : "bank 0", .bytes = 1 << 16, .contract = RM_OBJECT};
		rm_region *region = NULL;
		uint64_t has = 1000;
		DONE(rm_region_create(nodes[node], &spec, NULL, &region));
		DONE(rm_object_new(region, &has, sizeof has, 0, &bank.accounts[node]));
		rm_region_free(region);
	}
	/* Two threads, the other way round. */
	struct bank back = {.accounts = {bank.accounts[1], bank.accounts[0]}, .amount = 2};
	pthread_t threads[2];
	CHECK(pthread_create(&threads[0], NULL, pays_often, &bank) == 0);
	CHECK(pthread_create(&threads[1], NULL, pays_often, &back) == 0);
	for (int at = 0; at < 2; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	CHECK(bank.runs >= 100 && back.runs >= 100);
	uint64_t has[2];
	for (int at = 0; at < 2; at++) {
		size_t len = sizeof has[at];
		DONE(rm_object_read(bank.accounts[at], &has[at], &len, NULL));
	}
	CHECK(has[0] == 1100 && has[1] == 900);
	bank.amount = 1101;
	CHECK(rm_transact(nodes[1], pays, &bank) == RM_NOT_NOW);
	FAILS(rm_transact(nodes[1], NULL, NULL), RM_ARGUMENT, "bad-argument");
	FAILS(rm_transaction_read(NULL, bank.accounts[0], NULL, NULL, NULL), RM_ARGUMENT, "bad-argument");
	/* A body that fails by what it reads: the failure is the transaction's. */
	rm_object *second = bank.accounts[1];
	rm_object_ref at;
	DONE(rm_object_at(second, &at));
	DONE(rm_object_attach(nodes[0], at, &bank.accounts[1]));
	DONE(rm_object_remove(second));
	bank.amount = 1;
	FAILS(rm_transact(nodes[0], pays, &bank), RM_LOST, "gone");
	rm_object_free(bank.accounts[1]);
	rm_object_free(bank.accounts[0]);
}

/* What two nodes see of one value: the paper's Fig. 3 in short. */
/* Objects that a program drops itself. */
struct own {
	uint64_t pointers[2];
	size_t at, count;
};

static bool next_own(void *context, uint64_t *pointer)
{
	struct own *own = context;
	if (own->at == own->count)
		return false;
	*pointer = own->pointers[own->at++];
	return true;
}

static void bounded(void)
{
	char path[64];
	snprintf(path, sizeof path, "/dev/shm/rackmem-c-%d", (int)getpid());
	bi_spec spec = {.path = path, .bytes = 1 << 20, .bound = 60000000, .emulated = true};
	bi_arena *here = NULL, *there = NULL, *none = NULL;
	bi_section *section = NULL;
	bi_writer *writer = NULL;
	rm_lock *lock = NULL;
	uint64_t slot = 0, first = 0, second = 0, old = 7, pointer = 0, price = 0, tick = 0;
	FAILS(bi_open(nodes[0], &spec, &none), RM_OTHER, "no-file");
	DONE(bi_create(nodes[0], &spec, &here));
	FAILS(bi_create(nodes[1], &spec, &none), RM_OTHER, "is-there");
	DONE(bi_open(nodes[1], &spec, &there));
	DONE(rm_lock_open(nodes[0], "prices", &lock));
	DONE(bi_root(here, 7, &slot));
	FAILS(bi_root(here, 64, &slot), RM_ARGUMENT, "bad-pointer");

	DONE(bi_write(here, lock, &writer));
	price = 250;
	DONE(bi_alloc(writer, &price, sizeof price, 16, &first));
	FAILS(bi_alloc(writer, NULL, 0, 65537, &second), RM_ARGUMENT, "object-too-large");
	DONE(bi_assign_pointer(writer, slot, first, &old));
	CHECK(old == 0);
	FAILS(bi_assign_pointer(writer, slot, first, NULL), RM_ARGUMENT, "bad-argument");
	bi_written(writer);

	DONE(bi_quiesce(there));
	DONE(bi_enter(there, &section));
	DONE(bi_load(section, slot, &pointer));
	DONE(bi_dereference(section, pointer, 0, &price, sizeof price));
	CHECK(price == 250);
	FAILS(bi_dereference(section, pointer, 60, &price, sizeof price), RM_ARGUMENT, "bad-pointer");
	FAILS(bi_dereference(section, 0, 0, &price, sizeof price), RM_ARGUMENT, "bad-argument");
	FAILS(bi_load(section, 1, &pointer), RM_ARGUMENT, "bad-pointer");
	DONE(bi_exit(section));

	/* Another value: seen at once past the cache, and by all who have quiesced. */
	DONE(bi_write(here, lock, &writer));
	price = 260;
	DONE(bi_alloc(writer, &price, sizeof price, 0, &second));
	DONE(bi_assign_pointer(writer, slot, second, &old));
	CHECK(old == pointer);
	DONE(bi_free(writer, old));
	DONE(bi_writer_load(writer, slot, &pointer));
	DONE(bi_set(writer, pointer, 8, 77));
	FAILS(bi_set(writer, pointer, 64, 77), RM_ARGUMENT, "bad-pointer");
	DONE(bi_writer_read(writer, pointer, 8, &price, sizeof price));
	CHECK(price == 77);
	bi_written(writer);
	DONE(bi_enter(there, &section));
	DONE(bi_load(section, slot, &pointer));
	DONE(bi_dereference(section, pointer, 0, &price, sizeof price));
	CHECK(price == 250);
	DONE(bi_look_lazily(section, true));
	DONE(bi_load(section, slot, &pointer));
	DONE(bi_dereference(section, pointer, 0, &price, sizeof price));
	CHECK(price == 260);
	DONE(bi_exit(section));

	DONE(bi_quiesce(there));
	DONE(bi_write(there, lock, &writer));
	uint64_t field = 0;
	DONE(bi_writer_load(writer, slot, &pointer));
	FAILS(bi_field(pointer, 4, &field), RM_ARGUMENT, "bad-argument");
	DONE(bi_field(pointer, 16, &field));
	DONE(bi_alloc(writer, "next", 4, 0, &first));
	DONE(bi_assign_pointer(writer, field, first, NULL));
	DONE(bi_writer_load(writer, field, &old));
	DONE(bi_root(there, 8, &field));
	DONE(bi_lead(writer, field, old, NULL));
	DONE(bi_lead(writer, slot, 0, &old));
	CHECK(old == pointer);
	bi_written(writer);
	char next[5] = "";
	DONE(bi_quiesce(here));
	DONE(bi_enter(here, &section));
	DONE(bi_load(section, slot, &pointer));
	CHECK(pointer == 0);
	DONE(bi_load(section, field, &pointer));
	DONE(bi_dereference(section, pointer, 0, next, 4));
	CHECK(strcmp(next, "next") == 0);
	DONE(bi_exit(section));

	/* What nobody is told of is seen by who drops it. */
	uint64_t holder = 0, was = 0;
	DONE(bi_write(there, lock, &writer));
	DONE(bi_alloc(writer, NULL, 0, 64, &first));
	DONE(bi_assign_pointer(writer, slot, first, NULL));
	DONE(bi_writer_load(writer, slot, &holder));
	DONE(bi_field(holder, 8, &field));
	DONE(bi_alloc(writer, "own", 4, 0, &first));
	bi_written(writer);
	DONE(bi_quiesce(here));
	DONE(bi_enter(here, &section));
	DONE(bi_load(section, slot, &pointer));
	CHECK(pointer == holder);
	DONE(bi_load(section, field, &was));
	CHECK(was == 0);
	DONE(bi_exit(section));
	DONE(bi_write(there, lock, &writer));
	FAILS(bi_assign_own(writer, field, first, &was), RM_ARGUMENT, "bad-argument");
	DONE(bi_alloc(writer, "own", 4, 0, &first));
	DONE(bi_assign_own(writer, field, first, &was));
	CHECK(was == 0);
	bi_written(writer);
	DONE(bi_free_object_quiescent(here));
	DONE(bi_stale_object_quiescent(here, NULL, NULL));
	DONE(bi_enter(here, &section));
	DONE(bi_load(section, field, &was));
	CHECK(was == 0);
	DONE(bi_exit(section));
	struct own own = {{holder, 0}, 0, 1};
	DONE(bi_stale_object_quiescent(here, next_own, &own));
	DONE(bi_enter(here, &section));
	DONE(bi_load(section, field, &was));
	CHECK(was != 0);
	DONE(bi_dereference(section, was, 0, next, 4));
	CHECK(strcmp(next, "own") == 0);
	DONE(bi_exit(section));
	own = (struct own){{holder, holder + ((uint64_t)1 << 40)}, 0, 2};
	FAILS(bi_stale_object_quiescent(here, next_own, &own), RM_ARGUMENT, "bad-pointer");
	own = (struct own){{holder, 0}, 0, 2};
	FAILS(bi_stale_object_quiescent(here, next_own, &own), RM_ARGUMENT, "bad-argument");
	FAILS(bi_stale_object_quiescent(NULL, NULL, NULL), RM_ARGUMENT, "bad-argument");

	size_t count = 9;
	DONE(bi_reclaim(here, &count));
	DONE(synchronize_bi(here, &tick));
	FAILS(bi_enter(NULL, &section), RM_ARGUMENT, "bad-argument");
	FAILS(bi_exit(NULL), RM_ARGUMENT, "bad-argument");
	bi_written(NULL);
	rm_lock_free(lock);
	bi_close(here);
	bi_close(there);
	CHECK(unlink(path) == 0);

	/* A section that is open for longer than it may be. */
	spec.bound = 5000;
	DONE(bi_create(nodes[0], &spec, &here));
	DONE(bi_enter(here, &section));
	CHECK(usleep(100000) == 0);
	FAILS(bi_exit(section), RM_STALE, "late-section");
	bi_close(here);
	CHECK(unlink(path) == 0);
}

static void forks(void)
{
	rm_region_spec spec = coherent("of the parent");
	rm_region *region = NULL;
	DONE(rm_region_create(nodes[0], &spec, NULL, &region));
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		FAILS(rm_store(region, 0, 1), RM_FORKED, "forked");
		rm_region_free(region);
		DONE(rm_close(rack));
		_exit(0);
	}
	int status = 1;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	uint64_t value = 1;
	DONE(rm_load(region, 0, &value));
	CHECK(value == 0);
	rm_region_free(region);
}

int main(void)
{
	racks_and_nodes();
	regions_and_words();
	mapped_memory();
	ways_of_faults();
	blocked_signals();
	texts_of_failures();
	locks();
	reader_writer_locks();
	conditions();
	objects();
	transactions();
	bounded();
	forks();
	without_userfaultfd();
	rm_region_spec last = coherent("of a closed rack");
	rm_region *region = NULL;
	rm_lock *lock = NULL;
	DONE(rm_region_create(nodes[0], &last, NULL, &region));
	DONE(rm_lock_open(nodes[0], "of a closed rack/lock", &lock));
	DONE(rm_close(rack));
	uint64_t value = 0;
	rm_pages *pages = NULL;
	FAILS(rm_store(region, 0, 1), RM_CLOSED, "closed");
	FAILS(rm_load(region, BYTES - 8, &value), RM_CLOSED, "closed");
	FAILS(rm_map(region, &pages), RM_CLOSED, "closed");
	FAILS(rm_lock_acquire(lock, RM_FOREVER, NULL), RM_CLOSED, "closed");
	rm_lock_free(lock);
	rm_region_free(region);
	rm_region_spec spec = coherent("late");
	rm_region *none = NULL;
	FAILS(rm_region_create(nodes[0], &spec, NULL, &none), RM_CLOSED, "closed");
	rm_node_free(nodes[0]);
	rm_node_free(nodes[1]);
	printf("%d checks\n", checks);
	return 0;
}
