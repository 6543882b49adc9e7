/* Many small files, one after the other and at a time. small: prints their bytes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILES 200
#define MUST(what) \
    if (!(what)) return fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, strerrorname_np(errno)), 1

int main(void) {
    char name[64], text[1000], found[sizeof text];
    long bytes = 0;
    for (int nth = 0; nth < FILES; nth++) {
        snprintf(name, sizeof name, "/dev/shm/rack.small-%d", nth);
        memset(text, 'a' + nth % 26, sizeof text);
        int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        MUST(fd >= 0 && write(fd, text, sizeof text) == sizeof text);
        MUST(!fdatasync(fd) && !close(fd));
    }
    for (int nth = 0; nth < FILES; nth++) {
        snprintf(name, sizeof name, "/dev/shm/rack.small-%d", nth);
        memset(text, 'a' + nth % 26, sizeof text);
        int fd = open(name, O_RDONLY);
        ssize_t len = fd < 0 ? -1 : read(fd, found, sizeof found);
        MUST(len == sizeof text && !memcmp(text, found, sizeof text));
        MUST(!close(fd) && !unlink(name));
        bytes += len;
    }
    return printf("%ld\n", bytes), 0;
}
