// dump_programs FOLDER: writes the source of every OpenCL program into a folder, and programs.json,
// which says the family and the compiler's options of each.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/opencl/programs.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: dump_programs FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  auto list = nlohmann::json::array();
  for (const auto& [family, program] : octet::opencl::all_programs()) {
    const std::string file = std::string(program.name) + ".cl";
    std::ofstream(folder / file) << program.source;
    list.push_back(
        {{"name", program.name}, {"family", family}, {"options", program.options}, {"file", file}});
  }
  std::ofstream index(folder / "programs.json");
  index << list.dump(1) << "\n";
  index.flush();
  return index.good() ? 0 : 1;
}
