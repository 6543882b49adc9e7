/* Every kind of object of pthreads, semaphores and file locks, between processes.
   objects WHO HOW_MANY ROUNDS */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MUST(what) \
    if (!(what)) return fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, strerrorname_np(errno)), 1

struct shared {
    _Atomic int ready;
    pthread_barrier_t barrier;
    sem_t semaphore;
    pthread_rwlock_t rwlock;
    pthread_mutex_t recursive, checked;
    pthread_cond_t condition;
    long by_semaphore, by_rwlock[2], by_recursive, by_flock, by_fcntl;
};

static int init(struct shared *shared, int all) {
    pthread_mutexattr_t mutex;
    pthread_barrierattr_t barrier;
    pthread_rwlockattr_t rwlock;
    pthread_condattr_t condition;
    pthread_mutexattr_init(&mutex);
    pthread_barrierattr_init(&barrier);
    pthread_rwlockattr_init(&rwlock);
    pthread_condattr_init(&condition);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
    MUST(!pthread_barrier_init(&shared->barrier, &barrier, all));
    MUST(!sem_init(&shared->semaphore, 1, 1));
    MUST(!pthread_rwlock_init(&shared->rwlock, &rwlock));
    pthread_mutexattr_settype(&mutex, PTHREAD_MUTEX_RECURSIVE);
    MUST(!pthread_mutex_init(&shared->recursive, &mutex));
    pthread_mutexattr_settype(&mutex, PTHREAD_MUTEX_ERRORCHECK);
    MUST(!pthread_mutex_init(&shared->checked, &mutex));
    MUST(!pthread_cond_init(&shared->condition, &condition));
    shared->ready = 1;
    return 0;
}

static int meet(struct shared *shared) {
    int serial = pthread_barrier_wait(&shared->barrier);
    return serial == 0 || serial == PTHREAD_BARRIER_SERIAL_THREAD;
}

static struct timespec soon(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += 30000000;
    if (time.tv_nsec >= 1000000000) time.tv_sec++, time.tv_nsec -= 1000000000;
    return time;
}

static int count(struct shared *shared, int fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 1};
    MUST(!sem_wait(&shared->semaphore));
    shared->by_semaphore++;
    MUST(!sem_post(&shared->semaphore));
    MUST(!pthread_rwlock_wrlock(&shared->rwlock));
    shared->by_rwlock[0]++, shared->by_rwlock[1]++;
    MUST(!pthread_rwlock_unlock(&shared->rwlock));
    MUST(!pthread_rwlock_rdlock(&shared->rwlock));
    MUST(shared->by_rwlock[0] == shared->by_rwlock[1]);
    MUST(!pthread_rwlock_unlock(&shared->rwlock));
    MUST(!pthread_mutex_lock(&shared->recursive) && !pthread_mutex_lock(&shared->recursive));
    shared->by_recursive++;
    MUST(!pthread_mutex_unlock(&shared->recursive) && !pthread_mutex_unlock(&shared->recursive));
    MUST(pthread_mutex_unlock(&shared->recursive) == EPERM);
    MUST(!flock(fd, LOCK_EX));
    shared->by_flock++;
    MUST(!flock(fd, LOCK_UN));
    MUST(!fcntl(fd, F_SETLKW, &lock));
    shared->by_fcntl++;
    lock.l_type = F_UNLCK;
    MUST(!fcntl(fd, F_SETLK, &lock));
    return 0;
}

/* The first has it for some time, and the others do not get it. */
static int wait_in_vain(struct shared *shared, int who) {
    struct timespec time;
    if (who == 0) {
        MUST(!pthread_mutex_lock(&shared->checked));
        MUST(pthread_mutex_lock(&shared->checked) == EDEADLK);
    }
    MUST(meet(shared));
    if (who) {
        MUST(pthread_mutex_trylock(&shared->checked) == EBUSY);
        time = soon(CLOCK_REALTIME);
        MUST(pthread_mutex_timedlock(&shared->checked, &time) == ETIMEDOUT);
        MUST(pthread_mutex_unlock(&shared->checked) == EPERM);
    }
    MUST(meet(shared));
    if (who == 0) {
        time = soon(CLOCK_MONOTONIC);
        MUST(pthread_cond_timedwait(&shared->condition, &shared->checked, &time) == ETIMEDOUT);
        MUST(!pthread_mutex_unlock(&shared->checked));
    }
    MUST(meet(shared));
    MUST(who || !pthread_mutex_trylock(&shared->checked));
    MUST(meet(shared));
    return 0;
}

int main(int argc, char **argv) {
    MUST(argc == 4);
    int who = atoi(argv[1]), all = atoi(argv[2]);
    long rounds = atol(argv[3]);
    int fd = shm_open("/rack.objects", O_RDWR | O_CREAT, 0600);
    MUST(fd >= 0 && !ftruncate(fd, sizeof(struct shared)));
    struct shared *shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(shared != MAP_FAILED);
    if (who == 0 && init(shared, all)) return 1;
    while (!shared->ready) usleep(1000);
    MUST(meet(shared));
    for (long i = 0; i < rounds; i++)
        if (count(shared, fd)) return 1;
    MUST(meet(shared));
    if (wait_in_vain(shared, who)) return 1;
    sem_t *named = sem_open("/rack.objects", O_CREAT, 0600, 0);
    MUST(named != SEM_FAILED);
    struct timespec time = soon(CLOCK_REALTIME);
    MUST(sem_timedwait(named, &time) && errno == ETIMEDOUT);
    MUST(meet(shared));
    for (int i = 1; who == 0 && i < all; i++) MUST(!sem_post(named));
    if (who) MUST(!sem_wait(named));
    MUST(!sem_close(named));
    MUST(meet(shared));
    if (who == 0) MUST(!sem_unlink("/rack.objects") && !shm_unlink("/rack.objects"));
    MUST(shm_unlink("/rack.objects2") && errno == ENOENT);
    printf("%ld %ld %ld %ld %ld\n", shared->by_semaphore, shared->by_rwlock[0], shared->by_recursive,
           shared->by_flock, shared->by_fcntl);
    MUST(meet(shared));
    return 0;
}
