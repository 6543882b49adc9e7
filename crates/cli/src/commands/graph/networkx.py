"""The same computation by networkx: edges on standard input, one JSON object on standard output."""
import json, sys, time

import networkx

program, vertices, damping, tolerance, start = sys.argv[1:6]
graph = networkx.DiGraph()
graph.add_nodes_from(range(int(vertices)))
for line in sys.stdin:
    source, target, weight = map(int, line.split())
    graph.add_edge(source, target, weight=weight)


def ranks():
    options = dict(alpha=float(damping), max_iter=1000, weight=None)
    # It stops when all ranks together change by less than this times the number of vertices.
    options["tol"] = float(tolerance) / max(1, len(graph))
    try:
        return networkx.pagerank(graph, **options), "networkx (scipy)"
    except ImportError:
        from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python
        return _pagerank_python(graph, **options), "networkx (Python)"


def distances():
    return networkx.single_source_dijkstra_path_length(graph, int(start)), "networkx (Python)"


def components():
    found = {}
    for part in networkx.weakly_connected_components(graph):
        found.update(dict.fromkeys(part, min(part)))
    return found, "networkx (Python)"


began = time.perf_counter()
values, name = {"pagerank": ranks, "sssp": distances, "components": components}[program]()
seconds = time.perf_counter() - began
values = [values.get(vertex) for vertex in range(int(vertices))]
json.dump({"name": name, "version": networkx.__version__, "seconds": seconds, "values": values}, sys.stdout)
