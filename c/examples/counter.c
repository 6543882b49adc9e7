/* A counter that processes of several machines count at.
 *
 *     cc counter.c $(pkg-config --cflags --libs rackmem) -o counter
 *     rackmem run -n 3 -- ./counter 1000
 *
 * Each adds to one word, by a plain atomic instruction on mapped memory, and to another one under a
 * lock. The last one tells what both are.
 */

#include <rackmem.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static void must(rm_status status)
{
	if (status < 0) {
		fprintf(stderr, "counter: %s\n", rm_why());
		exit(1);
	}
}

int main(int arguments, char **argument)
{
	if (arguments != 2) {
		fprintf(stderr, "usage: rackmem run -- ./counter TIMES\n");
		return 2;
	}
	long times = atol(argument[1]);

	rm_rack *rack;
	rm_node *node;
	rm_region *region;
	rm_pages *pages;
	rm_lock *lock;
	rm_region_spec spec = {.name = "counter", .bytes = 4096};
	must(rm_from_env(&rack));
	must(rm_node_own(rack, &node));
	/* All of it is memory of node 0, which leaves last: it goes with the process that has it. */
	bool first = rm_node_id(node) == 0;
	if (first) {
		must(rm_lock_open(node, "counter/lock", &lock));
		must(rm_region_create(node, &spec, NULL, &region));
	} else {
		rm_status found;
		while ((found = rm_region_open(node, &spec, &region)) == RM_NOT_FOUND)
			sched_yield();
		must(found);
		must(rm_lock_open(node, "counter/lock", &lock));
	}
	must(rm_map(region, &pages));

	/* Word 0: counted by instructions. Word 1: under the lock. Words 2, 3: who has done, and left. */
	_Atomic uint64_t *words = rm_pages_at(pages, NULL);
	for (long i = 0; i < times; i++) {
		atomic_fetch_add(&words[0], 1);
		must(rm_lock_acquire(lock, RM_FOREVER, NULL));
		words[1] = words[1] + 1;
		must(rm_lock_release(lock));
	}
	uint64_t all = (uint64_t)rm_node_count(node), left = 0;
	if (atomic_fetch_add(&words[2], 1) + 1 == all)
		printf("%lu %lu\n", (unsigned long)words[0], (unsigned long)words[1]);
	while (words[2] < all)
		sched_yield();
	must(rm_unmap(pages));

	must(rm_fetch_add(region, 24, 1, NULL));
	while (first && left < all) {
		must(rm_load(region, 24, &left));
		sched_yield();
	}
	rm_lock_free(lock);
	rm_region_free(region);
	rm_node_free(node);
	must(rm_close(rack));
	return 0;
}
