/* One process dies after msync of one page and fsync of a file; another reads what is left. Or it
   makes a file longer that another has written and synced.
   synced victim | synced survivor | synced writer | synced grower | synced reader */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

static int file(const char *name) { return shm_open(name, O_RDWR | O_CREAT, 0600); }

static int waits(void) { return puts("kill it"), fflush(stdout), pause(); }

/* A file that one has synced, and another one makes longer than its room. */
static int grown(const char *who) {
    static char text[20 * PAGE], found[sizeof text];
    int fd = file("/rack.grown"), first = sizeof text / 2;
    memset(text, 'x', sizeof text);
    if (!strcmp(who, "writer")) {
        if (pwrite(fd, text, first, 0) != first || fsync(fd)) return perror("writer"), 3;
        return puts("written"), 0;
    }
    if (!strcmp(who, "grower")) {
        if (pwrite(fd, text, first, first) != first) return perror("grower"), 4;
        return waits();
    }
    if (pread(fd, found, first, 0) != first) return perror("reader"), 5;
    return puts(memcmp(text, found, first) ? "something else" : "whole"), 0;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    if (strchr("wgr", *argv[1])) return grown(argv[1]);
    int mapped = file("/rack.mapped"), written = file("/rack.written");
    if (mapped < 0 || written < 0 || ftruncate(mapped, 2 * PAGE)) return perror("shm_open"), 1;
    volatile char *bytes = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0);
    if (bytes == MAP_FAILED) return perror("mmap"), 1;
    if (!strcmp(argv[1], "victim")) {
        bytes[0] = bytes[PAGE] = 1;
        if (!msync((char *)bytes + 1, 1, MS_SYNC)) return 3;
        if (msync((char *)bytes, PAGE, MS_SYNC)) return perror("msync"), 4;
        bytes[0] = 2;
        if (pwrite(written, "whole", 5, 0) != 5 || fsync(written)) return perror("fsync"), 5;
        if (pwrite(written, "lost.", 5, 0) != 5) return perror("pwrite"), 6;
        return waits();
    }
    char text[6] = "";
    if (pread(written, text, 5, 0) != 5) return perror("pread"), 7;
    printf("%d %d %s\n", bytes[0], bytes[PAGE], text);
    return 0;
}
