/* What cannot work, one at a time: each ends with a number of an error, or a signal, and a message.
   refused WHAT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN (1 << 16)
#define PATH "/dev/shm/rack.refused"

static int *map(int fd, long len, int kind) {
    return mmap(kind & MAP_FIXED ? (void *)0x500000000000 : 0, len, PROT_READ | PROT_WRITE, kind, fd, 0);
}

static int said(int failed) { return printf("%s\n", failed ? strerrorname_np(errno) : "worked"), 0; }

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const char *what = argv[1];
    if (!strcmp(what, "opened-by-a-child")) return said(open(PATH, O_RDWR) < 0);
    int fd = open(PATH, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, LEN)) return perror("open"), 1;
    int *words = map(fd, LEN, MAP_SHARED);
    if (words == MAP_FAILED) return perror("mmap"), 1;
    words[0] = 7;
    if (!strcmp(what, "direct")) return said(open(PATH, O_RDWR | O_DIRECT) < 0);
    if (!strcmp(what, "reopen")) return said(!freopen(PATH, "r", fopen("/dev/null", "r")));
    if (!strcmp(what, "rename")) return said(rename(PATH, "/dev/shm/of-this-host"));
    if (!strcmp(what, "fixed")) return said(map(fd, LEN, MAP_SHARED | MAP_FIXED) == MAP_FAILED);
    if (!strcmp(what, "full")) {
        int other = open(PATH ".full", O_RDWR | O_CREAT, 0600);
        return said(other < 0 || ftruncate(other, 1l << 40));
    }
    if (!strcmp(what, "grown")) return said(pwrite(fd, "x", 1, 1l << 30) < 0);
    if (!strcmp(what, "room")) return said(ftruncate(fd, 1l << 30));
    if (!strcmp(what, "futex")) return said(syscall(SYS_futex, words, FUTEX_WAKE, 1, 0, 0, 0) < 0);
    if (!strcmp(what, "past")) return said(syscall(SYS_pwrite64, fd, "x", 1, 0) < 0);
    if (!strcmp(what, "private")) {
        int *own = map(fd, LEN, MAP_PRIVATE);
        own[0]++;
        return printf("%d %d\n", own[0], words[0]), 0;
    }
    if (!strcmp(what, "buffers")) { /* bytes of the mapping, by system calls, through a pipe */
        int pipes[2], *last = words + LEN / 4 - 1;
        if (pipe(pipes) || write(pipes[1], words, 4) != 4) return perror("write"), 1;
        if (read(pipes[0], last, 4) != 4) return perror("read"), 1;
        return printf("%d\n", *last), 0;
    }
    if (!strcmp(what, "exec")) {
        pid_t child = fork();
        if (child == 0) return execl("/proc/self/exe", argv[0], "opened-by-a-child", NULL), 1;
        int status;
        return waitpid(child, &status, 0) == child ? status : 1;
    }
    pid_t child = fork();
    if (child == 0) {
        if (!strcmp(what, "fork-opens")) _exit(said(open(PATH, O_RDWR) < 0) | fflush(stdout));
        if (!strcmp(what, "fork-loads")) _exit(words[0]);
        _exit(2);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf("%s\n", sigabbrev_np(WTERMSIG(status)));
    return words[0] != 7;
}
