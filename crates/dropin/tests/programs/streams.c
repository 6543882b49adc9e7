/* Files by streams, renamed into place, and messages of mapped memory.
   streams writes | reads */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PATH "/dev/shm/rack.streams"
#define MUST(what) \
    if (!(what)) return fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, strerrorname_np(errno)), 1

/* Streams that are given other files: of the rack, and of this host. */
static int reopens(void) {
    char text[8] = "";
    struct stat is;
    FILE *stream = fopen(PATH ".one", "w"), *own = stdout, *out;
    MUST(stream && fputs("one", stream) >= 0);
    MUST(freopen(PATH ".two", "w", stream) == stream && fputs("two", stream) >= 0);
    MUST(freopen(0, "r", stream) == stream && fgets(text, sizeof text, stream));
    MUST(!strcmp(text, "two") && feof(stream) && fputc('x', stream) == EOF);
    MUST(freopen(PATH ".one", "a+", stream) == stream && fputs(" more", stream) >= 0);
    MUST(!fseek(stream, 1, SEEK_SET) && fgetc(stream) == 'n');
    MUST(freopen("/dev/null", "w", stream) == stream && fputs("nowhere", stream) >= 0);
    MUST(!fflush(stream) && !stat(PATH ".one", &is) && is.st_size == 8 && !fclose(stream));
    /* A descriptor that appends from now on, and one whose stream does. */
    int fd = open(PATH ".one", O_RDWR), flags = fcntl(fd, F_GETFL);
    MUST(fd >= 0 && !(flags & O_APPEND) && !fcntl(fd, F_SETFL, flags | O_APPEND));
    MUST(fcntl(fd, F_GETFL) & O_APPEND && write(fd, "!", 1) == 1 && !close(fd));
    MUST((stream = fdopen(open(PATH ".one", O_RDWR), "a")) && fputc('?', stream) == '?' && !fclose(stream));
    MUST(!stat(PATH ".one", &is) && is.st_size == 10);
    MUST((stream = fopen(PATH ".one", "r")) && !freopen(PATH ".none", "r", stream) && errno == ENOENT);
    out = freopen(PATH ".out", "w", stdout);
    MUST(out && out == stdout && out != own && printf("to the rack") == 11 && !fclose(stdout));
    stdout = own;
    MUST(!stat(PATH ".out", &is) && is.st_size == 11);
    return 0;
}

static int writes(void) {
    MUST(!reopens());
    FILE *old = fopen(PATH, "w"), *new = fopen(PATH ".new", "wx");
    MUST(old && new && !fopen(PATH ".new", "wx") && errno == EEXIST);
    MUST(fputs("of before\n", old) >= 0 && !fclose(old));
    MUST(fprintf(new, "one %d\n", 7) > 0 && !fseek(new, 4, SEEK_SET) && fputc('2', new) == '2');
    MUST(fileno(new) > 2 && !fflush(new));
    struct stat is;
    MUST(!fstat(fileno(new), &is) && is.st_size == 6);
    MUST(!fclose(new));
    MUST(!rename(PATH ".new", PATH) && access(PATH ".new", F_OK) && errno == ENOENT);
    FILE *more = fopen(PATH, "ae");
    MUST(more && fputs("three\n", more) >= 0);
    /* Not closed: it is written when the process ends. */
    return puts("written"), 0;
}

/* Bytes of a mapping through a socket, in pieces, to a place of it. */
static int messages(void) {
    int fd = open(PATH ".map", O_RDWR | O_CREAT, 0600), ends[2];
    MUST(fd >= 0 && !ftruncate(fd, 1 << 16));
    char *map = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), own[4];
    MUST(map != MAP_FAILED && !socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    memcpy(map + 4094, "abcdef", 6);
    struct iovec from[] = {{map + 4094, 3}, {map + 4097, 3}}, to[] = {{own, 1}, {map + 8191, 5}};
    struct msghdr out = {.msg_iov = from, .msg_iovlen = 2}, in = {.msg_iov = to, .msg_iovlen = 2};
    MUST(sendmsg(ends[0], &out, 0) == 6 && recvmsg(ends[1], &in, 0) == 6);
    MUST(own[0] == 'a' && !memcmp(map + 8191, "bcdef", 5) && in.msg_iov == to && in.msg_iovlen == 2);
    MUST(writev(ends[0], from, 2) == 6 && readv(ends[1], to, 2) == 6);
    return 0;
}

static int reads(void) {
    MUST(!messages());
    FILE *stream = fopen(PATH, "r+");
    char text[64];
    MUST(stream);
    while (fgets(text, sizeof text, stream)) printf("%.*s ", (int)strcspn(text, "\n"), text);
    MUST(feof(stream) && !ferror(stream));
    rewind(stream);
    MUST(fgetc(stream) == 'o' && ftell(stream) == 1);
    MUST(!fclose(stream));
    int fd = open(PATH, O_RDWR);
    MUST((stream = fdopen(fd, "r")) && fgetc(stream) == 'o' && !fclose(stream));
    MUST(read(fd, text, 1) < 0 && errno == EBADF);
    return puts("end"), 0;
}

int main(int argc, char **argv) { return argc == 2 && *argv[1] == 'w' ? writes() : reads(); }
