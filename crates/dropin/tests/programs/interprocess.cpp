// Processes that take turns by Boost.Interprocess: a segment, a map in it, a mutex and a condition,
// all found by name. interprocess WHO HOW_MANY ROUNDS
#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/map.hpp>
#include <boost/interprocess/managed_shared_memory.hpp>
#include <boost/interprocess/sync/interprocess_condition.hpp>
#include <boost/interprocess/sync/interprocess_mutex.hpp>
#include <boost/interprocess/sync/scoped_lock.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace bi = boost::interprocess;

struct State {
    bi::interprocess_mutex mutex;
    bi::interprocess_condition changed;
    int turn = 0;
    int done = 0;
    long sum = 0;
};
typedef std::pair<const int, long> Pair;
typedef bi::allocator<Pair, bi::managed_shared_memory::segment_manager> Allocator;
typedef bi::map<int, long, std::less<int>, Allocator> Map;

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int who = atoi(argv[1]), all = atoi(argv[2]);
    long rounds = atol(argv[3]);
    bi::managed_shared_memory segment(bi::open_or_create, "rack.interprocess", 1 << 20);
    State *state = segment.find_or_construct<State>("state")();
    Map *map = segment.find_or_construct<Map>("map")(std::less<int>(), Allocator(segment.get_segment_manager()));
    for (long i = 0; i < rounds; i++) {
        bi::scoped_lock<bi::interprocess_mutex> lock(state->mutex);
        while (state->turn != who) state->changed.wait(lock);
        (*map)[i % 100]++; // makes a node in the segment, at first
        state->sum++;
        state->turn = (who + 1) % all;
        state->changed.notify_all();
    }
    long total = 0;
    {
        bi::scoped_lock<bi::interprocess_mutex> lock(state->mutex);
        state->done++;
        state->changed.notify_all();
        while (state->done < all) state->changed.wait(lock);
        for (auto &pair : *map) total += pair.second;
    }
    printf("%ld %ld\n", state->sum, total);
    return 0;
}
