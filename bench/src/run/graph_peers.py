"""PageRank by a library: edges on standard input, one JSON object on standard output.

The time is the median of those of the computation: not of reading the graph, nor of making the library's own out of it.
"""
import json, sys, time

library, vertices = sys.argv[1], int(sys.argv[2])
damping, tolerance, duration = map(float, sys.argv[3:6])


def networkx(edges):
    import networkx as it
    import scipy  # Without it networkx computes in Python, a hundred times slower.
    graph = it.DiGraph()
    graph.add_nodes_from(range(vertices))
    graph.add_edges_from(edges)
    # It stops when all ranks together change by less than this times the number of vertices.
    options = dict(alpha=damping, max_iter=1000, tol=tolerance / max(1, vertices))

    def ranks():
        found = it.pagerank(graph, **options)
        return [found[vertex] for vertex in range(vertices)]

    return ranks, it.__version__


def igraph(edges):
    import igraph as it
    graph = it.Graph(n=vertices, edges=edges, directed=True)
    return lambda: graph.pagerank(damping=damping), it.__version__


def networkit(edges):
    import networkit as it
    graph = it.Graph(vertices, directed=True)
    for source, target in edges:
        graph.addEdge(source, target)
    handling = it.centrality.SinkHandling
    # Its name is another one since version 11.
    sinks = getattr(handling, "DISTRIBUTE_SINKS", None) or handling.DistributeSinks

    def ranks():
        ranks = it.centrality.PageRank(graph, damping, tolerance, distributeSinks=sinks)
        ranks.norm = it.centrality.Norm.L1_NORM
        ranks.maxIterations = 1000
        return ranks.run().scores()

    return ranks, it.__version__


edges = [tuple(map(int, line.split())) for line in sys.stdin]
ranks, version = {"networkx": networkx, "igraph": igraph, "networkit": networkit}[library](edges)
times = []
while not times or sum(times) < duration:
    began = time.perf_counter()
    values = ranks()
    times.append(time.perf_counter() - began)
seconds = sorted(times)[len(times) // 2]
json.dump({"version": version, "seconds": seconds, "values": list(values)}, sys.stdout)
