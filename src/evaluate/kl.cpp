#include "evaluate/kl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "base/error.h"
#include "base/printable.h"

namespace octet {
namespace {

// Logits that one model has ready and the other has not.
class LogitSource {
 public:
  LogitSource(Engine& engine, std::string_view which)
      : engine_(engine), which_(which), vocab_(engine.plan().request.dims.vocab) {}

  void begin(std::span<const int32_t> window) {
    Request request;
    request.prompt.assign(window.begin(), window.end());
    request.score_prompt = true;
    request.keep_logits = true;
    engine_.submit(std::move(request));
  }

  // Steps until at least one row is there; false at the end of the window.
  bool fill() {
    while (rows() == 0 && !engine_.idle()) {
      for (Event& event : engine_.step()) {
        if (event.finish == FinishReason::Failed) {
          throw_error(Code::Environment, fmt::format("{}: {}", which_, event.failure),
                      "octet inspect names weights and scales that are damaged");
        }
        if (event.logits.empty()) continue;
        logits_ = std::move(event.logits);
        next_ = 0;
      }
    }
    return rows() != 0;
  }

  int64_t rows() const { return static_cast<int64_t>(logits_.size()) / vocab_ - next_; }
  std::span<const float> row(int64_t i) const {
    return std::span(logits_).subspan(static_cast<size_t>((next_ + i) * vocab_),
                                      static_cast<size_t>(vocab_));
  }
  void drop(int64_t count) { next_ += count; }

 private:
  Engine& engine_;
  std::string_view which_;
  int64_t vocab_;
  std::vector<float> logits_;
  int64_t next_ = 0;  // first row that is not compared yet
};

struct Softmax {
  double largest = 0;
  double log_sum = 0;  // log of the sum of exp(logit - largest)
  size_t best = 0;
};

Softmax softmax_of(std::span<const float> logits) {
  Softmax s;
  s.best = static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  s.largest = logits[s.best];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - s.largest);
  s.log_sum = std::log(sum);
  return s;
}

// The value that a share of `percent` of the sorted values does not exceed (nearest rank).
double percentile(const std::vector<double>& sorted, double percent) {
  const auto rank =
      static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

void check_sizes(const Engine& reference, const Engine& model, size_t tokens, int64_t window) {
  if (tokens < 2) {
    throw_error(Code::BadInput,
                fmt::format("a text of {} tokens predicts nothing: at least 2 are needed", tokens),
                "give a longer text");
  }
  if (window < 2) {
    throw_error(Code::BadInput, "a context of 1 token predicts nothing: at least 2 are needed",
                "raise --max-model-len");
  }
  const int64_t a = reference.plan().request.dims.vocab;
  const int64_t b = model.plan().request.dims.vocab;
  if (a != b) {
    throw_error(
        Code::BadInput,
        fmt::format("the reference has a vocabulary of {} entries, the model one of {}", a, b),
        "both must be forms of one model");
  }
}

// All that was measured so far.
class Totals {
 public:
  void add(const TokenKl& token, int64_t index) {
    if (kl_.empty() || token.kl > max_) {
      max_ = token.kl;
      max_token_ = index;
    }
    kl_.push_back(token.kl);
    sum_ += token.kl;
    same_ += token.same_best ? 1 : 0;
    reference_nll_ += token.reference_nll;
    nll_ += token.nll;
  }

  KlResult result(int64_t tokens) {
    std::sort(kl_.begin(), kl_.end());
    const auto count = static_cast<double>(kl_.size());
    KlResult out;
    out.tokens = tokens;
    out.scored = static_cast<int64_t>(kl_.size());
    out.mean = sum_ / count;
    out.max = max_;
    out.max_token = max_token_;
    out.p50 = percentile(kl_, 50);
    out.p90 = percentile(kl_, 90);
    out.p99 = percentile(kl_, 99);
    out.p999 = percentile(kl_, 99.9);
    out.top1_agreement = static_cast<double>(same_) / count;
    out.reference_nll = reference_nll_ / count;
    out.nll = nll_ / count;
    return out;
  }

 private:
  std::vector<double> kl_;
  double sum_ = 0, max_ = 0, reference_nll_ = 0, nll_ = 0;
  int64_t same_ = 0, max_token_ = 0;
};

}  // namespace

TokenKl token_kl(std::span<const float> reference, std::span<const float> model, int32_t target) {
  const Softmax p = softmax_of(reference);
  const Softmax q = softmax_of(model);
  TokenKl out;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double log_p = reference[i] - p.largest - p.log_sum;
    const double log_q = model[i] - q.largest - q.log_sum;
    out.kl += std::exp(log_p) * (log_p - log_q);
  }
  out.kl = std::max(out.kl, 0.0);  // rounding may leave equal distributions a little below
  out.same_best = p.best == q.best;
  const auto at = static_cast<size_t>(target);
  out.reference_nll = p.log_sum + p.largest - reference[at];
  out.nll = q.log_sum + q.largest - model[at];
  return out;
}

KlResult kl_divergence(Engine& reference, Engine& model, std::span<const int32_t> tokens,
                       ThreadPool& pool, const std::function<void(int64_t)>& progress) {
  const auto window = static_cast<size_t>(
      std::min(reference.plan().budget.max_model_len, model.plan().budget.max_model_len));
  check_sizes(reference, model, tokens.size(), static_cast<int64_t>(window));
  LogitSource a(reference, "the reference"), b(model, "the model");
  Totals totals;
  std::vector<TokenKl> rows;
  for (size_t begin = 0; begin < tokens.size(); begin += window) {
    const auto part = tokens.subspan(begin, std::min(window, tokens.size() - begin));
    if (part.size() < 2) break;
    a.begin(part);
    b.begin(part);
    auto next = static_cast<int64_t>(begin) + 1;  // the token that the next row predicts
    while (true) {
      const bool more = a.fill();  // both, that none is left behind
      if (!b.fill() || !more) break;
      const int64_t count = std::min(a.rows(), b.rows());
      rows.assign(static_cast<size_t>(count), {});
      pool.parallel_for(count, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          rows[static_cast<size_t>(i)] =
              token_kl(a.row(i), b.row(i), tokens[static_cast<size_t>(next + i)]);
        }
      });
      for (const TokenKl& row : rows) totals.add(row, next++);
      a.drop(count);
      b.drop(count);
      if (progress) progress(next);
    }
  }
  return totals.result(static_cast<int64_t>(tokens.size()));
}

void require_same_tokenizer(const Tokenizer& reference, const Tokenizer& model) {
  constexpr std::string_view kHint = "a divergence per token means something for equal tokens only";
  if (reference.size() != model.size()) {
    throw_error(Code::BadInput,
                fmt::format("the tokenizer of the reference has {} ids, that of the model {}",
                            reference.size(), model.size()),
                std::string(kHint));
  }
  for (int32_t id = 0; id < reference.size(); ++id) {
    const std::string_view a = reference.token_bytes(id);
    const std::string_view b = model.token_bytes(id);
    if (a == b && reference.is_special(id) == model.is_special(id)) continue;
    throw_error(
        Code::BadInput,
        fmt::format("the tokenizers differ: id {} is \"{}\"{} in the reference and \"{}\"{} "
                    "in the model",
                    id, printable_name(a), reference.is_special(id) ? " (special)" : "",
                    printable_name(b), model.is_special(id) ? " (special)" : ""),
        std::string(kHint));
  }
}

}  // namespace octet
