/* One process dies inside of a robust mutex, with bytes of the file locked; another goes on.
   robust victim | robust leaver | robust survivor */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct shared {
    pthread_mutex_t mutex;
    char apart[8192];
    volatile long inside, seen;
};

static int lock_bytes(int fd, int command, int type, struct flock *lock) {
    *lock = (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = 100, .l_len = 10};
    return fcntl(fd, command, lock);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int fd = shm_open("/rack.robust", O_RDWR | O_CREAT, 0600), error;
    struct flock lock;
    if (fd < 0 || ftruncate(fd, sizeof(struct shared))) return perror("shm_open"), 1;
    struct shared *shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) return perror("mmap"), 1;
    if (strcmp(argv[1], "survivor")) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&shared->mutex, &attributes);
        if (pthread_mutex_lock(&shared->mutex)) return 3;
        if (lock_bytes(fd, F_SETLK, F_WRLCK, &lock)) return perror("F_SETLK"), 3;
        shared->inside = 42;
        while (!shared->seen || !strcmp(argv[1], "victim")) usleep(1000);
        return 0;
    }
    while (shared->inside != 42) usleep(1000);
    if (pthread_mutex_trylock(&shared->mutex) != EBUSY) return 4;
    if (lock_bytes(fd, F_SETLK, F_WRLCK, &lock) == 0 || errno != EAGAIN) return 5;
    if (lock_bytes(fd, F_GETLK, F_WRLCK, &lock) || lock.l_type != F_WRLCK || lock.l_pid <= 0) return 6;
    shared->seen = 1;
    puts("kill it");
    fflush(stdout);
    error = pthread_mutex_lock(&shared->mutex);
    printf("%s\n", error == EOWNERDEAD ? "EOWNERDEAD" : strerror(error));
    if (pthread_mutex_consistent(&shared->mutex)) return 7;
    if (pthread_mutex_unlock(&shared->mutex)) return 8;
    if (pthread_mutex_lock(&shared->mutex) || pthread_mutex_unlock(&shared->mutex)) return 9;
    if (lock_bytes(fd, F_SETLKW, F_WRLCK, &lock)) return perror("F_SETLKW"), 10;
    printf("%ld\n", shared->inside);
    return 0;
}
