// The same by streams of C++, which are buffers above `fopen` and descriptors.
// streams writes | reads
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

static const std::string path = "/dev/shm/rack.streams++";

int main(int argc, char **argv) {
    if (argc == 2 && *argv[1] == 'w') {
        std::ofstream out(path + ".new");
        out << "one " << 2 << "\nthr";
        out.seekp(0, std::ios::end);
        out << "ee\n";
        out.close();
        if (!out || std::rename((path + ".new").c_str(), path.c_str())) return std::perror("written"), 1;
        std::cout << "written\n";
        return 0;
    }
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) std::cout << line << ' ';
    in.clear();
    in.seekg(4);
    int two = 0;
    if (!(in >> two) || two != 2) return std::perror("read"), 1;
    std::cout << "end\n";
    return 0;
}
