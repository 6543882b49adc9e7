/* Two processes in strict turns on one word of a file that both have mapped.
   dropin_turns WHO HOW_MANY SECONDS PATH
   Prints how many turns it has had, in how many seconds, and how many there were. */
#define _GNU_SOURCE
#include "clock.h"
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define OVER (1ul << 63)

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    unsigned long who = strtoul(argv[1], 0, 10), all = strtoul(argv[2], 0, 10), turn, done = 0;
    double seconds = atof(argv[3]);
    int fd = open(argv[4], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 8192)) return perror(argv[4]), 1;
    _Atomic unsigned long *words = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED) return perror("mmap"), 1;
    /* On another page. */
    words[512]++;
    while (words[512] < all) usleep(1000);
    double begun = now();
    while (turn = words[0], !(turn & OVER)) {
        if (turn % all != who) {
            sched_yield();
        } else if (who == 0 && now() > begun + seconds) {
            words[0] = turn | OVER;
        } else {
            words[0] = turn + 1;
            done++;
        }
    }
    printf("{\"done\": %lu, \"seconds\": %f, \"count\": %lu}\n", done, now() - begun, turn & ~OVER);
    return 0;
}
