#pragma once
// Tiny models that the program can talk with: random weights, a real tokenizer, a ChatML template.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "testing/tiny_checkpoint.h"

namespace octet {

// The small decoder that most tests run: hidden 64, two layers, 400 tokens of vocabulary.
TinyModel small_model(LayerQuant quant = tiny_fp8_dynamic());

// A checkpoint of it in which the end token (2) is never the most likely one, so that greedy
// answers run to their limit.
TinyCheckpoint endless_checkpoint(const TinyModel& model);

// Adds tokenizer.json (399 tokens), tokenizer_config.json and chat_template.jinja.
void add_text_files(const std::filesystem::path& dir);

// A folder with endless_checkpoint(small_model(quant)) and the text files. Returns `dir`.
std::filesystem::path write_small_model(const std::filesystem::path& dir,
                                        LayerQuant quant = tiny_fp8_dynamic());

// The same as text, changed: a byte string of a whole file.
std::string read_bytes(const std::filesystem::path& path);
void write_bytes(const std::filesystem::path& path, const std::string& bytes);
nlohmann::json read_json(const std::filesystem::path& path);

// Cuts a safetensors file right after its header.
void cut_after_header(const std::filesystem::path& path);

}  // namespace octet
