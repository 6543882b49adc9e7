/* Processes that count in shared memory: under a process-shared mutex, and by an atomic.
   counter WHO HOW_MANY ROUNDS */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct shared {
    _Atomic int ready;
    pthread_mutex_t mutex;
    long locked;
    char apart[8192];
    _Atomic long atomic;
    _Atomic int done;
};

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int who = atoi(argv[1]), all = atoi(argv[2]);
    long rounds = atol(argv[3]);
    int fd = shm_open("/rack.counter", O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct shared))) return perror("shm_open"), 1;
    struct stat is;
    if (fstat(fd, &is) || is.st_size != (long)sizeof(struct shared)) return perror("fstat"), 1;
    struct shared *shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) return perror("mmap"), 1;
    close(fd);
    if (who == 0) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(&shared->mutex, &attributes);
        shared->ready = 1;
    }
    while (!shared->ready) usleep(1000);
    for (long i = 0; i < rounds; i++) {
        if (pthread_mutex_lock(&shared->mutex)) return 3;
        shared->locked++;
        if (pthread_mutex_unlock(&shared->mutex)) return 3;
        shared->atomic++;
    }
    shared->done++;
    while (shared->done < all) usleep(1000);
    printf("%ld %ld\n", shared->locked, (long)shared->atomic);
    return 0;
}
