/* Every function of the library, in one process. */
#define _POSIX_C_SOURCE 200809L

#include <rackmem.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	for (int node = 0; node < 2; node++) {
		DONE(rm_unmap(pages[node]));
		rm_region_free(regions[node]);
	}
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
	locks();
	objects();
	forks();
	DONE(rm_close(rack));
	rm_region_spec spec = coherent("late");
	rm_region *none = NULL;
	FAILS(rm_region_create(nodes[0], &spec, NULL, &none), RM_CLOSED, "closed");
	rm_node_free(nodes[0]);
	rm_node_free(nodes[1]);
	printf("%d checks\n", checks);
	return 0;
}
