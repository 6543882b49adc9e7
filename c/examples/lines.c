/* How many lines a file has, of which each process reads a part.
 *
 *     cc lines.c $(pkg-config --cflags --libs rackmem) -o lines
 *     rackmem run -n 3 -- ./lines FILE
 *
 * The file is the same on all hosts. Each process reads its part by pread(2), straight into mapped
 * memory, whose pages it pins for the call; the first one counts the lines of all of them.
 */

#define _POSIX_C_SOURCE 200809L
#include <rackmem.h>

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A page of its own for what all write, before the bytes. */
#define HEAD 4096
/* Bytes that are pinned at a time: pages of others wait meanwhile. */
#define PIECE 65536

static void must(rm_status status)
{
	if (status < 0) {
		fprintf(stderr, "lines: %s\n", rm_why());
		exit(1);
	}
}

static void of_system(int fails, const char *what)
{
	if (fails) {
		perror(what);
		exit(1);
	}
}

int main(int arguments, char **argument)
{
	if (arguments != 2) {
		fprintf(stderr, "usage: rackmem run -- ./lines FILE\n");
		return 2;
	}
	struct stat file;
	int fd = open(argument[1], O_RDONLY);
	of_system(fd < 0 || fstat(fd, &file) || file.st_size == 0, argument[1]);
	size_t bytes = (size_t)file.st_size;

	rm_rack *rack;
	rm_node *node;
	rm_region *region;
	rm_pages *pages;
	rm_region_spec spec = {.name = "lines", .bytes = HEAD + bytes};
	must(rm_from_env(&rack));
	must(rm_node_own(rack, &node));
	size_t all = (size_t)rm_node_count(node), me = (size_t)rm_node_id(node);
	/* It is memory of node 0, which leaves last. */
	if (me == 0) {
		must(rm_region_create(node, &spec, NULL, &region));
	} else {
		rm_status found;
		while ((found = rm_region_open(node, &spec, &region)) == RM_NOT_FOUND)
			sched_yield();
		must(found);
	}
	must(rm_map(region, &pages));
	_Atomic uint64_t *done = rm_pages_at(pages, NULL);
	char *text = (char *)done + HEAD;

	/* Whole pages each, so that nobody writes a page of another's. */
	size_t part = (bytes / all / HEAD + 1) * HEAD;
	size_t end = (me + 1) * part < bytes ? (me + 1) * part : bytes;
	for (size_t at = me * part; at < end;) {
		size_t len = end - at < PIECE ? end - at : PIECE;
		must(rm_pin(pages, HEAD + at, len, true));
		ssize_t got = pread(fd, text + at, len, (off_t)at);
		must(rm_unpin(pages, HEAD + at, len, true));
		of_system(got <= 0, "pread");
		at += (size_t)got;
	}
	atomic_fetch_add(&done[0], 1);

	if (me == 0) {
		size_t lines = 0;
		while (done[0] < all)
			sched_yield();
		for (size_t at = 0; at < bytes; at++)
			lines += text[at] == '\n';
		printf("%zu\n", lines);
		done[1] = 1;
	}
	while (!done[1])
		sched_yield();
	must(rm_unmap(pages));

	uint64_t left = 0;
	must(rm_fetch_add(region, 16, 1, NULL));
	while (me == 0 && left < all) {
		must(rm_load(region, 16, &left));
		sched_yield();
	}
	rm_region_free(region);
	rm_node_free(node);
	must(rm_close(rack));
	return 0;
}
