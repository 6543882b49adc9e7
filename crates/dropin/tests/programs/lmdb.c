/* Processes that count in one LMDB database: write transactions that add to a counter and put a
   record of their own, and read transactions. lmdb WHO HOW_MANY ROUNDS [PATH] */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call)                                                       \
    do {                                                               \
        int error = (call);                                            \
        if (error) {                                                   \
            fprintf(stderr, "%s: %s\n", #call, mdb_strerror(error));   \
            exit(1);                                                   \
        }                                                              \
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

/* Adds to a counter, in a transaction of its own. */
static long add(const char *name, const char *own) {
    MDB_txn *txn;
    OK(mdb_txn_begin(env, 0, 0, &txn));
    long number = get(txn, name) + 1;
    put(txn, name, number);
    if (own) put(txn, own, number);
    OK(mdb_txn_commit(txn));
    return number;
}

static long look(const char *name) {
    MDB_txn *txn;
    OK(mdb_txn_begin(env, 0, MDB_RDONLY, &txn));
    long number = get(txn, name);
    mdb_txn_abort(txn);
    return number;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    int who = atoi(argv[1]), all = atoi(argv[2]);
    long rounds = atol(argv[3]), last = 0;
    const char *path = argc > 4 ? argv[4] : "/dev/shm/rack.lmdb";
    OK(mdb_env_create(&env));
    OK(mdb_env_set_mapsize(env, 16 << 20));
    OK(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_WRITEMAP | MDB_NOSYNC, 0600));
    MDB_txn *txn;
    OK(mdb_txn_begin(env, 0, 0, &txn));
    OK(mdb_dbi_open(txn, 0, 0, &db));
    OK(mdb_txn_commit(txn));
    for (long i = 0; i < rounds; i++) {
        char own[32];
        snprintf(own, sizeof own, "of-%d-%ld", who, i % 100);
        add("count", own);
        long now = look("count");
        if (now <= last) return fprintf(stderr, "%ld after %ld\n", now, last), 1;
        last = now;
    }
    add("done", 0);
    while (look("done") < all) usleep(1000);
    printf("%ld\n", look("count"));
    mdb_env_close(env);
    return 0;
}
