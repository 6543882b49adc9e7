/* Write transactions of LMDB, by several processes at once: each adds to a counter that all have
   and writes a record of its own. dropin WHO HOW_MANY SECONDS PATH SYNC
   Prints how many it has done, in how many seconds, and (the last to end) the counter. */
#include "clock.h"
#include "counters.h"

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    int who = atoi(argv[1]), all = atoi(argv[2]);
    double seconds = atof(argv[3]);
    open_database(argv[4], atoi(argv[5]) ? 0 : MDB_NOSYNC);
    meet("here", all);
    double begun = now();
    long done = 0;
    for (; now() < begun + seconds; done++) {
        char own[32];
        snprintf(own, sizeof own, "of-%d-%ld", who, done % 500);
        add("count", own);
    }
    double took = now() - begun;
    meet("done", all);
    printf("{\"done\": %ld, \"seconds\": %f, \"count\": %ld}\n", done, took, look("count"));
    mdb_env_close(env);
    return 0;
}
