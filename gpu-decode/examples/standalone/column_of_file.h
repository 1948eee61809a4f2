// From a cb2t file to one column's blocks and the places of their tiles, by SPEC.md in format-spec/. Everything is checked before it is used; what is wrong ends the program.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

constexpr u32 TILE_SIZE = 1024;
enum Order : u32 { NONE, UNSIGNED, SIGNED, FLOAT };

// By the ids of SPEC.md section 8.
static bool is_known(u32 codec, u32 value_bits) { return codec <= 4 || (codec == 5 && value_bits >= 32) || (codec == 6 && value_bits >= 16); }

[[noreturn]] static void refuse(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "sum_column: ");
  std::vfprintf(stderr, format, arguments);
  std::fprintf(stderr, "\n");
  std::exit(1);
}

// Bytes of the file, and where in it they are: nothing is read beyond them.
struct Part {
  const u8* bytes;
  u64 length;

  Part part(u64 offset, u64 count, const char* what) const {
    if (offset > length || count > length - offset) refuse("%s: bytes %llu to %llu of %llu", what, offset, offset + count, length);
    return {bytes + offset, count};
  }
  template <class T>
  T at(u64 offset) const {
    T value;
    std::memcpy(&value, part(offset, sizeof(T), "field").bytes, sizeof(T));
    return value;
  }
};

// CRC-32 over several parts.
static u32 checksum(std::initializer_list<Part> parts) {
  u32 sum = 0xffffffffu;
  for (const Part& part : parts) {
    for (u64 i = 0; i < part.length; i++) {
      sum ^= part.bytes[i];
      for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
    }
  }
  return ~sum;
}
static void require_equal(const char* what, u64 found, u64 wanted) {
  if (found != wanted) refuse("%s is %llu, not %llu", what, found, wanted);
}

// What the places of tiles in units of 16 bytes reach, and what constant blocks, which take no room, may claim.
constexpr u64 MAX_BYTES = 1ull << 35, MAX_TILES = 1 << 24;

// A column's blocks, one behind the other, and where their tiles are: what goes to the device.
struct Upload {
  std::vector<u8> bytes;
  std::vector<cb2t::TileEntry> tiles;
  std::vector<u32> shared_offsets_16;
  u32 value_bits = 0, order = 0;
  u64 value_count = 0;

  // SPEC.md section 5.
  void add(Part block, u64 entry_value_count) {
    if (std::memcmp(block.part(0, 64, "block header").bytes, "CB2B", 4) != 0) refuse("a block's magic is wrong");
    require_equal("a block's format_version", block.at<u16>(4), 0);
    const u32 codec = block.at<u16>(6), bits = block.at<u8>(9), tile_count = block.at<u32>(20);
    if (value_count == 0) value_bits = bits, order = block.at<u8>(10);
    if ((bits != 8 && bits != 16 && bits != 32 && bits != 64) || order > FLOAT || (order == FLOAT && bits < 32)) {
      refuse("values of %u bits and order %u are left out", bits, order);
    }
    if (!is_known(codec, bits)) refuse("codec %u of %u bits is left out", codec, bits);
    require_equal("a block's kind", block.at<u8>(8), 0);
    require_equal("a block's value_width", bits, value_bits);
    require_equal("a block's order", block.at<u8>(10), order);
    require_equal("a block's tile_size", block.at<u32>(12), TILE_SIZE);
    require_equal("a block's value_count", block.at<u32>(16), entry_value_count);
    require_equal("a block's block_bytes", block.at<u32>(28), block.length);
    const u64 tiles_needed = (entry_value_count + TILE_SIZE - 1) / TILE_SIZE;
    require_equal("a block's tile_count", tile_count, codec == 0 ? 0 : tiles_needed);

    const auto padded = [](u64 length) { return (length + 15) / 16 * 16; };
    const u64 shared_bytes = block.at<u32>(24), offsets = 64 + padded(shared_bytes), checksums = offsets + padded((tile_count + 1ull) * 4);
    const u64 tables_end = codec == 0 ? 64 : checksums + padded(tile_count * 4ull) + (order == NONE ? 0 : 2 * padded(tile_count * u64(bits / 8)));
    require_equal("a block's header_checksum", block.at<u32>(60), checksum({block.part(0, 60, "header"), block.part(64, tables_end - 64, "tile tables")}));

    const u64 start = bytes.size();
    if (start + block.length > MAX_BYTES || tiles.size() + tiles_needed > MAX_TILES) refuse("more than %llu bytes or %llu tiles in a column are left out", MAX_BYTES, MAX_TILES);
    for (u64 tile = 0; tile < tiles_needed; tile++) {
      u64 place = 48;  // the value of a constant block
      if (codec != 0) {
        const u64 end = block.at<u32>(offsets + 4 * tile + 4);
        place = block.at<u32>(offsets + 4 * tile);
        if (place % 16 != 0 || place < tables_end || place >= end || (tile + 1 == tiles_needed && end != block.length)) {
          refuse("tile %llu of a block is at %llu to %llu", tile, place, end);
        }
        require_equal("a tile's checksum", checksum({block.part(place, end - place, "tile")}), block.at<u32>(checksums + 4 * tile));
      }
      const u64 left = entry_value_count - tile * TILE_SIZE;
      tiles.push_back({static_cast<u32>((start + place) / 16), codec << 24 | static_cast<u32>(left < TILE_SIZE ? left : TILE_SIZE)});
      shared_offsets_16.push_back(static_cast<u32>((start + 64) / 16));
    }
    bytes.insert(bytes.end(), block.bytes, block.bytes + block.length);
    bytes.resize((bytes.size() + 63) / 64 * 64);
    value_count += entry_value_count;
  }
};

// SPEC.md sections 2 to 4: from the trailer to the blocks of one column.
static Upload read_column(Part file, u64 index) {
  if (file.length < 96) refuse("a file of %llu bytes", file.length);
  const Part trailer = file.part(file.length - 32, 32, "trailer");
  if (std::memcmp(file.bytes, "cb2t\r\n\x1a\n", 8) != 0 || std::memcmp(trailer.bytes + 24, "\ncb2tend", 8) != 0) {
    refuse("no cb2t file, or one that is cut off");
  }
  require_equal("format_version", file.at<u16>(8), 0);
  const Part footer = file.part(trailer.at<u64>(0), trailer.at<u64>(8), "footer");
  require_equal("footer_checksum", checksum({footer, trailer.part(0, 16, ""), trailer.part(20, 4, "")}), trailer.at<u32>(16));
  const u64 row_groups = footer.at<u32>(8), columns = footer.at<u32>(12);
  if (index >= columns) refuse("column %llu of %llu", index, columns);
  const Part column = footer.part(64 + 8 * row_groups + 24 * index, 24, "column entry");
  const Part section = file.part(column.at<u64>(0), column.at<u64>(8), "section");
  require_equal("section_checksum", checksum({section}), column.at<u32>(16));

  if (section.at<u32>(0) != 1) refuse("column %llu has nodes within: left out", index);
  require_equal("a section's row_group_count", section.at<u32>(4), row_groups);
  const u64 buffers_at = 32 + 64 * row_groups + 32ull * section.at<u32>(8), blocks_at = buffers_at + 24ull * section.at<u32>(12);
  Upload upload;
  for (u64 group = 0; group < row_groups; group++) {
    const Part chunk = section.part(32 + 64 * group, 64, "node chunk");
    if (chunk.at<u64>(8) != 0) refuse("column %llu has nulls: left out", index);
    if (chunk.at<u8>(38) != 0 || chunk.at<u16>(36) != 1) refuse("column %llu is no column of numbers: left out", index);
    const Part buffer = section.part(buffers_at + 24ull * chunk.at<u32>(32), 24, "buffer");
    if (buffer.at<u8>(0) != 2 || buffer.at<u8>(1) != 0) refuse("column %llu is no column of numbers: left out", index);
    for (u64 block = buffer.at<u32>(8); block < u64(buffer.at<u32>(8)) + buffer.at<u32>(4); block++) {
      const Part entry = section.part(blocks_at + 24 * block, 24, "block entry");
      upload.add(file.part(entry.at<u64>(0), entry.at<u32>(8), "block"), entry.at<u32>(12));
    }
  }
  return upload;
}
