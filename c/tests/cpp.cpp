// The header is C++ as well, and the library is linked as C.

#include <rackmem.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>

struct Close {
	void operator()(rm_rack *rack) const { rm_close(rack); }
	void operator()(rm_node *node) const { rm_node_free(node); }
	void operator()(rm_region *region) const { rm_region_free(region); }
};

int main()
{
	rm_rack *rack = nullptr;
	if (rm_local(1, 0, 0, &rack) != RM_OK)
		return 1;
	std::unique_ptr<rm_rack, Close> own(rack);
	rm_node *node = nullptr;
	if (rm_node_open(rack, 0, &node) != RM_OK)
		return 1;
	std::unique_ptr<rm_node, Close> at(node);
	rm_region_spec spec{};
	spec.name = "words";
	spec.bytes = 4096;
	rm_region *region = nullptr;
	if (rm_region_create(node, &spec, nullptr, &region) != RM_OK)
		return 1;
	std::unique_ptr<rm_region, Close> words(region);
	std::uint64_t before = 1;
	if (rm_fetch_add(region, 0, 5, &before) != RM_OK || before != 0)
		return 1;
	std::printf("1 check\n");
	return 0;
}
