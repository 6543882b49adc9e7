/* Processes that count in one LMDB database: write transactions that add to a counter and put a
   record of their own, and read transactions. lmdb WHO HOW_MANY ROUNDS [sync] */
#include "counters.h"

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    int who = atoi(argv[1]), all = atoi(argv[2]);
    long rounds = atol(argv[3]), last = 0;
    open_database("/dev/shm/rack.lmdb", argc > 4 ? 0 : MDB_NOSYNC);
    for (long i = 0; i < rounds; i++) {
        char own[32];
        snprintf(own, sizeof own, "of-%d-%ld", who, i % 100);
        add("count", own);
        long now = look("count");
        if (now <= last) return fprintf(stderr, "%ld after %ld\n", now, last), 1;
        last = now;
    }
    meet("done", all);
    printf("%ld\n", look("count"));
    mdb_env_close(env);
    return 0;
}
