// Every command of the program: its table, its help, the catalogue and the probe.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands.h"
#include "cli/help_format.h"
#include "device/info.h"
#include "tests/integration/process.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Commands, EveryTableIsSound) {
  ASSERT_FALSE(commands().empty());
  for (const Command& command : commands()) {
    EXPECT_THAT(spec_problems(*command.spec), IsEmpty()) << command.spec->name;
  }
}

TEST(Commands, HelpNamesEveryFlag) {
  for (const Command& command : commands()) {
    const std::string name(command.spec->name);
    const Ran ran = run_octet({name, "--help"});
    EXPECT_EQ(ran.status, 0) << name;
    EXPECT_THAT(ran.err, IsEmpty());
    for (const Flag* flag : all_flags(*command.spec)) {
      EXPECT_THAT(ran.out, HasSubstr("--" + std::string(flag->name))) << name;
    }
    EXPECT_EQ(run_octet({"help", name}).out, ran.out) << name;
    EXPECT_EQ(run_octet({name, "-h"}).out, ran.out) << name;
  }
}

// The whole text of a page of the source folder.
std::string page(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Commands, ExitStatusesAreTheSameInEveryPage) {
  const std::string readme = page("README.md");
  const std::string design = page("DESIGN.md");
  for (const ExitNote& note : standard_exits()) {
    EXPECT_THAT(readme, HasSubstr(fmt::format("\n| {} | {} |\n", note.status, note.meaning)));
    EXPECT_THAT(design, ContainsRegex(fmt::format("\n\\| {} \\| [A-Za-z-]+ \\| {} \\|\n",
                                                  note.status, note.meaning)));
  }
  for (const Command& command : commands()) {
    EXPECT_TRUE(command.spec->exits.empty()) << command.spec->name;
  }
}

TEST(Commands, TheOverviewNamesEveryCommand) {
  const Ran ran = run_octet({"--help"});
  EXPECT_EQ(ran.status, 0);
  for (const Command& command : commands()) {
    EXPECT_THAT(ran.out, HasSubstr(std::string(command.spec->name)));
  }
  EXPECT_EQ(run_octet({"help"}).out, ran.out);
  const Ran nothing = run_octet({});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_EQ(nothing.err, ran.out);
}

TEST(Commands, TheVersionIsOneLine) {
  const Ran ran = run_octet({"--version"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, std::string("octet ") + OCTET_VERSION + "\n");
}

TEST(Commands, AnUnknownCommandIsExit2) {
  const Ran ran = run_octet({"plam"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("plam"), HasSubstr("plan")));
  EXPECT_EQ(run_octet({"help", "plam"}).status, 2);
}

TEST(Commands, MissingAndSurplusWordsAreExit2) {
  for (const char* name : {"plan", "run", "chat", "perplexity", "quantize"}) {
    const Ran ran = run_octet({name});
    EXPECT_EQ(ran.status, 2) << name;
    EXPECT_THAT(ran.err, HasSubstr("octet: ")) << name;
  }
  EXPECT_EQ(run_octet({"probe", "surplus"}).status, 2);
  EXPECT_EQ(run_octet({"kernels", "--surplus"}).status, 2);
  EXPECT_EQ(run_octet({"kernels", "--json", "--markdown"}).status, 2);
}

TEST(Commands, HelpShowsWhatAFlagChoosesFrom) {
  EXPECT_THAT(run_octet({"quantize", "--help"}).out,
              HasSubstr("--scheme fp8-dynamic|fp8-block|fp8-static|fp8-weight-only\n"));
  EXPECT_THAT(run_octet({"plan", "--help"}).out, HasSubstr("--max-isa baseline|avx2|avx512"));
}

TEST(Commands, TextsHaveNoDoubleSpacesOrWrongPlurals) {
  const json rows = json::parse(run_octet({"kernels", "--json"}).out);
  ASSERT_FALSE(rows.empty());
  for (const json& row : rows)
    EXPECT_THAT(row["takes"].get<std::string>(), Not(HasSubstr("  "))) << row["name"];
  EXPECT_THAT(run_octet({"completion", "bash", "zsh"}).err, HasSubstr("takes 1 argument, got"));
}

TEST(Commands, KernelsListsTheCatalogueThreeWays) {
  const Ran ran = run_octet({"kernels", "--json"});
  ASSERT_EQ(ran.status, 0);
  const json rows = json::parse(ran.out);
  const std::string text = run_octet({"kernels"}).out;
  const std::string markdown = run_octet({"kernels", "--markdown"}).out;
  std::set<std::string> names;
  for (const json& row : rows) {
    const std::string name = row["name"];
    EXPECT_TRUE(names.insert(name).second) << name << " is listed twice";
    EXPECT_EQ(row["device"], name.substr(0, name.find('.')));
    EXPECT_TRUE(row["isa"].is_string());
    EXPECT_FALSE(row["takes"].get<std::string>().empty()) << name;
    EXPECT_EQ(row["op"] == "linear", row["scheme"].is_string()) << name;
    EXPECT_THAT(text, HasSubstr(name));
    EXPECT_THAT(markdown, HasSubstr(name));
  }
  EXPECT_TRUE(names.contains("cpu.linear.w8a8.f8.ref"));
  EXPECT_TRUE(names.contains("cpu.linear.w8a16.f8.avx2"));
}

TEST(Commands, TheTableOfKernelsHasAHeading) {
  const std::string out = run_octet({"kernels"}).out;
  const std::string heading = out.substr(0, out.find('\n'));
  EXPECT_THAT(heading, AllOf(HasSubstr("kernel"), HasSubstr("preference"), HasSubstr("takes")));
  // Its columns are those of the lines below.
  const size_t row = out.find("cpu.linear.w8a8.f8.ref");
  ASSERT_NE(row, std::string::npos);
  EXPECT_EQ(out.find("needs", row) - row, heading.find("needs"));
}

TEST(Commands, TheProbeIsAProfile) {
  const Ran ran = run_octet({"probe", "--json"});
  ASSERT_EQ(ran.status, 0);
  const DeviceInfo device = device_info_from_json(ran.out, "probe");
  DeviceInfo here = probe_cpu();
  here.memory_bytes = device.memory_bytes;  // what is free changes from one moment to the next
  EXPECT_EQ(device, here);
  // Without the OpenCL drivers of this machine, which not every instrumented program can load.
  setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
  const std::string text = run_octet({"probe"}).out;
  unsetenv("OCL_ICD_VENDORS");
  EXPECT_THAT(text, HasSubstr(device.name));
  EXPECT_THAT(text, HasSubstr("no device found"));
}

}  // namespace
}  // namespace octet
