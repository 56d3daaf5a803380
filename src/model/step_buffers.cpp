#include "model/step_buffers.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/rope_angles.h"

namespace octet {
namespace {

constexpr size_t align64(size_t bytes) {
  return (bytes + 63) & ~size_t{63};
}

// Grows `buffer` to at least `bytes`, with room for later steps.
void reserve(Buffer& buffer, size_t bytes, Device& device) {
  if (buffer.bytes() < bytes) buffer = device.allocate(bytes + bytes / 2);
}

template <class T>
std::vector<T> take(const std::vector<std::byte>& record, size_t offset, size_t count) {
  std::vector<T> values(count);
  if (count != 0) std::memcpy(values.data(), record.data() + offset, count * sizeof(T));
  return values;
}

// [rows, rotary_dim] cosines and sines of a batch; each sequence has its own table where the kind
// of rotation asks for it.
std::vector<float> angles_of(const Batch& batch, const RopeConfig& rope, int64_t rotary_dim) {
  std::vector<float> angles(batch.positions.size() * static_cast<size_t>(rotary_dim));
  const auto factor = static_cast<float>(rope.attention_factor);
  if (!depends_on_length(rope.kind)) {
    rope_angles(rope_frequencies(rope, rotary_dim, 0), factor, batch.positions, angles.data());
    return angles;
  }
  for (size_t i = 0; i < batch.spans.size(); ++i) {
    const SeqSpan& span = batch.spans[i];
    const int64_t length = batch.lengths.empty() ? span.context + span.rows : batch.lengths[i];
    rope_angles(rope_frequencies(rope, rotary_dim, length), factor,
                std::span(batch.positions)
                    .subspan(static_cast<size_t>(span.row_begin), static_cast<size_t>(span.rows)),
                angles.data() + span.row_begin * rotary_dim);
  }
  return angles;
}

}  // namespace

Workspace::Workspace(const WorkspaceSizes& sizes, Device& device) {
  const auto make = [&](size_t bytes) {
    buffers_.push_back(device.allocate(bytes));
    return buffers_.back().data();
  };
  const auto make_floats = [&](size_t bytes) { return static_cast<float*>(make(bytes)); };
  residual = make_floats(sizes.residual);
  normed = make_floats(sizes.normed);
  delta = make_floats(sizes.delta);
  q = make_floats(sizes.q);
  k = make_floats(sizes.k);
  v = make_floats(sizes.v);
  attention = make_floats(sizes.attention);
  gate = make_floats(sizes.gate);
  up = make_floats(sizes.up);
  codes = make(sizes.codes);
  code_scales = make_floats(sizes.code_scales);
  linear_scratch = make(sizes.linear_scratch);
  attention_scratch = make(sizes.attention_scratch);
  head_input = make_floats(sizes.head_input);
  logits = make_floats(sizes.logits);
  sample_scratch = make_floats(sizes.sample_scratch);
}

template <class T>
size_t StepBuffers::append(std::span<const T> values) {
  const size_t offset = image_.size();
  image_.resize(align64(offset + values.size_bytes()));
  if (!values.empty()) std::memcpy(image_.data() + offset, values.data(), values.size_bytes());
  return offset;
}

void StepBuffers::lay_out_result(const Batch& batch) {
  const size_t logit_rows = batch.logit_rows.size();
  const size_t top = logit_rows * static_cast<size_t>(batch.top_logprobs);
  size_t end = 0;
  const auto place = [&](size_t count) {
    const size_t offset = end;
    end = align64(end + count * sizeof(int32_t));
    return offset;
  };
  not_finite_ = place(batch.tokens.size());
  logits_not_finite_ = place(logit_rows);
  ids_ = place(logit_rows);
  logprobs_ = place(logit_rows);
  target_logprobs_ = place(batch.targets.size());
  top_ids_ = place(top);
  top_logprobs_ = place(top);
  record_.resize(end);
  reserve(results_, end, device_);
}

void StepBuffers::upload(const Batch& batch, const RopeConfig& rope, int64_t rotary_dim,
                         Stream& stream) {
  image_.clear();
  std::vector<int32_t> rows(batch.tokens.size());
  std::iota(rows.begin(), rows.end(), 0);
  const std::vector<float> angles = angles_of(batch, rope, rotary_dim);
  tokens_ = append(std::span(batch.tokens));
  slots_ = append(std::span(batch.slots));
  spans_ = append(std::span(batch.spans));
  block_tables_ = append(std::span(batch.block_tables));
  angle_rows_ = append(std::span<const int32_t>(rows));
  angles_ = append(std::span<const float>(angles));
  logit_rows_ = append(std::span(batch.logit_rows));
  sample_ = append(std::span(batch.sample));
  history_ = append(std::span(batch.history));
  targets_ = append(std::span(batch.targets));
  reserve(inputs_, image_.size(), device_);
  stream.upload(inputs_.data(), image_.data(), image_.size());

  lay_out_result(batch);
  std::vector<int32_t> finite((ids_ - not_finite_) / sizeof(int32_t), StepResult::kFinite);
  stream.upload(results_.data(), finite.data(), finite.size() * sizeof(int32_t));
}

StepResult StepBuffers::download(const Batch& batch, Stream& stream) {
  stream.download(record_.data(), results_.data(), record_.size());
  const size_t logit_rows = batch.logit_rows.size();
  const size_t top = logit_rows * static_cast<size_t>(batch.top_logprobs);
  StepResult result;
  result.not_finite = take<int32_t>(record_, not_finite_, batch.tokens.size());
  const auto logits = take<int32_t>(record_, logits_not_finite_, logit_rows);
  for (size_t i = 0; i < logit_rows; ++i) {
    int32_t& flag = result.not_finite[static_cast<size_t>(batch.logit_rows[i])];
    flag = std::min(flag, logits[i]);
  }
  if (!batch.sample.empty()) result.ids = take<int32_t>(record_, ids_, logit_rows);
  result.logprobs = take<float>(record_, logprobs_, logit_rows);
  result.target_logprobs = take<float>(record_, target_logprobs_, batch.targets.size());
  result.top_ids = take<int32_t>(record_, top_ids_, top);
  result.top_logprobs = take<float>(record_, top_logprobs_, top);
  return result;
}

}  // namespace octet
