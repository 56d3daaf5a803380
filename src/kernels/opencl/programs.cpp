#include "kernels/opencl/programs.h"

#include <fmt/format.h>

#include <mutex>
#include <set>

#include "kernels/opencl/linear_panels.h"
#include "kernels/opencl/sources.h"
#include "op/attention.h"

namespace octet::opencl {

std::string_view interned(std::string text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> texts;
  const std::lock_guard lock(mutex);
  return *texts.insert(std::move(text)).first;
}

std::string_view element_define(DType type) {
  switch (type) {
    case DType::BF16:
      return " -DOCTET_BF16";
    case DType::F16:
      return " -DOCTET_F16";
    case DType::F8E4M3:
      return " -DOCTET_E4M3";
    case DType::F8E5M2:
      return " -DOCTET_E5M2";
    default:
      return "";
  }
}

ClProgram rows_program() {
  static const std::string options = fmt::format("{} -DGROUP={}", kPlain.options, kRowItems);
  return {"rows", kRowsSource, options};
}

ClProgram sample_program() {
  static const std::string options = fmt::format("{} -DGROUP={}", kPlain.options, kVocabItems);
  return {"sample", kSampleSource, options};
}

ClProgram draw_program(const Family& family) {
  return {interned(fmt::format("draw_{}", family.name)), kDrawSource, family.options};
}

ClProgram tables_program(DType type) {
  return {interned(fmt::format("tables_{}", name(type))), kTablesSource,
          interned(fmt::format("{}{}", kPlain.options, element_define(type)))};
}

ClProgram attention_program(const Family& family, DType type, int64_t chunks) {
  return {interned(fmt::format("attention_{}_{}_{}", family.name, name(type), chunks * 16)),
          kAttentionSource,
          interned(fmt::format("{} -DCHUNKS={} -DSPLIT={}{}", family.options, chunks, kKvSplit,
                               element_define(type)))};
}

std::vector<FamilyProgram> all_programs() {
  constexpr int64_t kHeadDims[] = {64, 80, 128, 256};
  constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2};
  std::vector<FamilyProgram> all;
  for (const ClProgram& program : common_linear_programs()) all.push_back({"common", program});
  all.push_back({"common", rows_program()});
  all.push_back({"common", sample_program()});
  for (const DType type : kTypes) all.push_back({"common", tables_program(type)});
  for (const Family* family : {&kPlain, &kPlainNarrow, &kSubgroup}) {
    for (const ClProgram& program : linear_programs(*family))
      all.push_back({family->name, program});
    for (const DType type : kTypes) {
      for (const int64_t head_dim : kHeadDims)
        all.push_back({family->name, attention_program(*family, type, head_dim / 16)});
    }
    all.push_back({family->name, draw_program(*family)});
  }
  for (const Family* family : {&kDpas16, &kDpas8}) {
    for (const ClProgram& program : dpas_programs(*family)) all.push_back({family->name, program});
  }
  return all;
}

}  // namespace octet::opencl
