/* Programs write records of a file, each its own, while it grows, then of the next one, and append to
   a log. In the end all of it is there, once. growing WHO ALL ROUNDS: prints how many records. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD 64000
/* Of each program in each file. */
#define RECORDS 5
#define MUST(what) \
    if (!(what)) return fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, strerrorname_np(errno)), 1

/* Waits until the log has so many records. */
static int await(int log, unsigned records) {
    struct stat is;
    do {
        usleep(1000);
        MUST(!fstat(log, &is));
    } while (is.st_size < (off_t)(records * sizeof(unsigned)));
    return 0;
}

static int opened(unsigned nth) {
    char name[64];
    snprintf(name, sizeof name, "/dev/shm/rack.growing-%u", nth);
    return open(name, O_RDWR | O_CREAT, 0600);
}

int main(int argc, char **argv) {
    MUST(argc == 4);
    unsigned who = atoi(argv[1]), all = atoi(argv[2]), rounds = atoi(argv[3]), total = all * rounds;
    int log = open("/dev/shm/rack.growing-log", O_RDWR | O_CREAT | O_APPEND, 0600), file = -1;
    MUST(log >= 0);
    static unsigned record[RECORD / sizeof(unsigned)];
    const unsigned words = RECORD / sizeof(unsigned), each = RECORDS * all;
    for (unsigned round = 0; round < rounds; round++) {
        unsigned nth = round * all + who;
        if (round % RECORDS == 0) {
            MUST(!await(log, round * all));
            MUST((file < 0 || !close(file)) && (file = opened(nth / each)) >= 0);
        }
        for (unsigned at = 0; at < words; at++) record[at] = nth + 1;
        MUST(pwrite(file, record, RECORD, (off_t)(nth % each) * RECORD) == RECORD);
        MUST(write(log, &nth, sizeof nth) == sizeof nth);
        MUST(lseek(log, 0, SEEK_CUR) >= (off_t)((round + 1) * sizeof nth));
    }
    MUST(!await(log, total) && lseek(log, 0, SEEK_END) == (off_t)(total * sizeof(unsigned)));
    char *seen = calloc(total, 1);
    for (unsigned at = 0; at < total; at++) {
        unsigned nth;
        MUST(pread(log, &nth, sizeof nth, at * sizeof nth) == sizeof nth);
        MUST(nth < total && !seen[nth]++);
    }
    for (unsigned nth = 0; nth < total; nth++) {
        if (nth % each == 0) MUST(!close(file) && (file = opened(nth / each)) >= 0);
        MUST(pread(file, record, RECORD, (off_t)(nth % each) * RECORD) == RECORD);
        for (unsigned word = 0; word < words; word++) MUST(record[word] == nth + 1);
    }
    return printf("%u\n", total), 0;
}
