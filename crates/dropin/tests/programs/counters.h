/* Counters in an LMDB database, each added to by a transaction of its own: for programs of the
   tests and of `bench dropin`. */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* `sync`: 0, or MDB_NOSYNC where nothing needs to outlive the processes. */
static void open_database(const char *path, unsigned sync) {
    MDB_txn *txn;
    OK(mdb_env_create(&env));
    OK(mdb_env_set_mapsize(env, 16 << 20));
    OK(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_WRITEMAP | sync, 0600));
    OK(mdb_txn_begin(env, 0, 0, &txn));
    OK(mdb_dbi_open(txn, 0, 0, &db));
    OK(mdb_txn_commit(txn));
}

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

/* Adds to a counter, and puts a record of this process, if there is one. */
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

/* Adds to a counter, and waits until all have. */
static void meet(const char *name, int all) {
    add(name, 0);
    while (look(name) < all) usleep(1000);
}
