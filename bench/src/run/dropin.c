/* Write transactions of LMDB, by several processes at once: each adds to a counter that all have
   and writes a record of its own. dropin WHO HOW_MANY SECONDS PATH
   Prints how many it has done, in how many seconds, and (the last to end) the counter. */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OK(call)                                                     \
    do {                                                             \
        int error = (call);                                          \
        if (error) {                                                 \
            fprintf(stderr, "%s: %s\n", #call, mdb_strerror(error)); \
            exit(1);                                                 \
        }                                                            \
    } while (0)

static MDB_env *env;
static MDB_dbi db;

static long get(MDB_txn *txn, const char *name) {
    MDB_val key = {strlen(name), (void *)name}, value;
    long number = 0;
    int error = mdb_get(txn, db, &key, &value);
    if (!error) memcpy(&number, value.mv_data, sizeof number);
    else if (error != MDB_NOTFOUND) OK(error);
    return number;
}

static void put(MDB_txn *txn, const char *name, long number) {
    MDB_val key = {strlen(name), (void *)name}, value = {sizeof number, &number};
    OK(mdb_put(txn, db, &key, &value, 0));
}

static void add(const char *name, const char *own) {
    MDB_txn *txn;
    OK(mdb_txn_begin(env, 0, 0, &txn));
    long number = get(txn, name) + 1;
    put(txn, name, number);
    if (own) put(txn, own, number);
    OK(mdb_txn_commit(txn));
}

static long look(const char *name) {
    MDB_txn *txn;
    OK(mdb_txn_begin(env, 0, MDB_RDONLY, &txn));
    long number = get(txn, name);
    mdb_txn_abort(txn);
    return number;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int who = atoi(argv[1]), all = atoi(argv[2]);
    double seconds = atof(argv[3]);
    OK(mdb_env_create(&env));
    OK(mdb_env_set_mapsize(env, 16 << 20));
    OK(mdb_env_open(env, argv[4], MDB_NOSUBDIR | MDB_WRITEMAP | MDB_NOSYNC, 0600));
    MDB_txn *txn;
    OK(mdb_txn_begin(env, 0, 0, &txn));
    OK(mdb_dbi_open(txn, 0, 0, &db));
    OK(mdb_txn_commit(txn));
    add("here", 0);
    while (look("here") < all) usleep(1000);
    double begun = now();
    long done = 0;
    for (; now() < begun + seconds; done++) {
        char own[32];
        snprintf(own, sizeof own, "of-%d-%ld", who, done % 500);
        add("count", own);
    }
    double took = now() - begun;
    add("done", 0);
    while (look("done") < all) usleep(1000);
    printf("{\"done\": %ld, \"seconds\": %f, \"count\": %ld}\n", done, took, look("count"));
    mdb_env_close(env);
    return 0;
}
