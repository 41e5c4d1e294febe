-- AeroTP for Wireshark and tshark: decodes every field, checks the header's CRC-16 and, where the capture has all of it, the
-- payload's CRC-32. The layout is that of docs/aerotp.md.
--
--   tshark -X lua_script:aerotp.lua -r run.pcapng
--
-- AeroTP is IP protocol 254 in simulated captures, and the payload of UDP datagrams on any port over sockets: those are
-- recognised by a right CRC-16, or by "Decode As".

local bit = bit or bit32

local aerotp = Proto("aerotp", "AeroTP")

local VERSION = 1
local FIXED_BYTES, END_BYTES, CHECK_BYTES = 16, 4, 4
local LEAST_BYTES = FIXED_BYTES + END_BYTES
local ASYN, AFIN, MACK, RESET, FEC, REPAIR, CRC, EXTENDED = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
local CLASS_OF_SERVICE, FORWARD, SKIPPED, MUST_BE_KNOWN = 1, 2, 3, 0x80
local MACK_FIXED_BYTES = 16

local MODES = { [0] = "reliable", "near-reliable", "quasi-reliable", "unreliable", "datagram" }
local ECN = { [0] = "Not-ECT", "ECT(1)", "ECT(0)", "CE" }
local EXTENDED_TYPES = { [0] = "padding", "class of service", "forward", "skipped" }
local STATUS = { [0] = "bad", "good", "unverified" }
local BAD, GOOD, UNVERIFIED = 0, 1, 2

local field = {
    source = ProtoField.uint16("aerotp.srcport", "Source port"),
    destination = ProtoField.uint16("aerotp.dstport", "Destination port"),
    port = ProtoField.uint16("aerotp.port", "Source or destination port"),
    sequence = ProtoField.uint32("aerotp.seq", "Sequence number"),
    timestamp = ProtoField.uint32("aerotp.timestamp", "Timestamp", base.DEC, nil, nil, "Ticks of the sender, a microsecond or a few"),
    version = ProtoField.uint8("aerotp.version", "Version", base.DEC, nil, 0xc0),
    sealed = ProtoField.bool("aerotp.sealed", "Sealed form", 8, nil, 0x20),
    mode = ProtoField.uint8("aerotp.mode", "Mode", base.DEC, MODES, 0x1c),
    ecn = ProtoField.uint8("aerotp.ecn", "ECN", base.DEC, ECN, 0x03),
    flags = ProtoField.uint8("aerotp.flags", "Flags", base.HEX),
    asyn = ProtoField.bool("aerotp.flags.asyn", "ASYN", 8, nil, ASYN, "Opens a connection"),
    afin = ProtoField.bool("aerotp.flags.afin", "AFIN", 8, nil, AFIN, "The stream ends with this segment"),
    mack = ProtoField.bool("aerotp.flags.mack", "MACK", 8, nil, MACK, "Acknowledges"),
    reset = ProtoField.bool("aerotp.flags.reset", "RESET", 8, nil, RESET, "There is no such connection"),
    has_fec = ProtoField.bool("aerotp.flags.fec", "FEC", 8, nil, FEC, "Parity stands behind the payload"),
    has_repair = ProtoField.bool("aerotp.flags.repair", "REPAIR", 8, nil, REPAIR, "The payload is a repair symbol"),
    has_crc = ProtoField.bool("aerotp.flags.crc", "CRC", 8, nil, CRC, "A check of the payload stands at the end"),
    extended = ProtoField.bool("aerotp.flags.extended", "EXTENDED", 8, nil, EXTENDED, "More optional fields follow"),
    length = ProtoField.uint16("aerotp.len", "Payload length"),
    opening = ProtoField.uint32("aerotp.opening", "Opening: the stream begins at"),
    fec_words = ProtoField.uint16("aerotp.fec.words", "Words of parity"),
    fec_reserved = ProtoField.uint16("aerotp.fec.reserved", "Reserved", base.HEX),
    repair_start = ProtoField.uint32("aerotp.repair.start", "Repairs the stream from"),
    repair_bytes = ProtoField.uint32("aerotp.repair.bytes", "Bytes of the stream"),
    repair_symbol_bytes = ProtoField.uint16("aerotp.repair.symbol_bytes", "Bytes of a symbol"),
    repair_symbols = ProtoField.uint16("aerotp.repair.symbols", "Source symbols"),
    repair_index = ProtoField.uint32("aerotp.repair.index", "Number of the symbol"),
    extended_words = ProtoField.uint8("aerotp.extended.words", "Words of extended fields"),
    extended_type = ProtoField.uint8("aerotp.extended.type", "Type", base.DEC, EXTENDED_TYPES),
    extended_length = ProtoField.uint8("aerotp.extended.len", "Length"),
    extended_value = ProtoField.bytes("aerotp.extended.value", "Value"),
    class = ProtoField.uint8("aerotp.class", "Class of service"),
    forward = ProtoField.uint32("aerotp.forward", "The stream goes on at", base.DEC, nil, nil, "What is missing before was given up"),
    skipped = ProtoField.uint32("aerotp.mack.skipped", "Bytes skipped so far"),
    tag = ProtoField.uint16("aerotp.tag", "Tag", base.HEX),
    hec = ProtoField.uint16("aerotp.hec", "Header check (CRC-16)", base.HEX),
    hec_status = ProtoField.uint8("aerotp.hec.status", "Header check status", base.DEC, STATUS),
    ack = ProtoField.uint32("aerotp.mack.ack", "ACK number 0: everything before has arrived"),
    echo = ProtoField.uint32("aerotp.mack.echo", "Echo of a timestamp"),
    from_start = ProtoField.bool("aerotp.mack.from_start", "Nothing has arrived before the first block", 32, nil, 0x80000000),
    to_end = ProtoField.bool("aerotp.mack.to_end", "Nothing has arrived behind the last block", 32, nil, 0x40000000),
    counts = ProtoField.bool("aerotp.mack.counts_symbols", "The list counts what coded blocks want", 32, nil, 0x20000000),
    distances = ProtoField.bool("aerotp.mack.has_distances", "The list has distances between edges", 32, nil, 0x10000000),
    unit = ProtoField.uint32("aerotp.mack.unit", "Unit of the distances, bytes"),
    held = ProtoField.uint32("aerotp.mack.held", "Held for", base.DEC, nil, 0x0fffffff, "24 bits of microseconds, behind 4 of a power of two"),
    held_s = ProtoField.double("aerotp.mack.held_s", "Held for, seconds"),
    window = ProtoField.uint32("aerotp.mack.window", "Window"),
    marked = ProtoField.uint16("aerotp.mack.marked", "Segments that arrived with a congestion mark"),
    damaged = ProtoField.uint16("aerotp.mack.damaged", "Segments that arrived damaged"),
    edge_start = ProtoField.uint32("aerotp.mack.block.start", "Block from"),
    edge_end = ProtoField.uint32("aerotp.mack.block.end", "Block up to"),
    payload = ProtoField.bytes("aerotp.payload", "Payload"),
    parity = ProtoField.bytes("aerotp.fec.parity", "Parity"),
    crc = ProtoField.uint32("aerotp.crc", "Payload check (CRC-32)", base.HEX),
    crc_status = ProtoField.uint8("aerotp.crc.status", "Payload check status", base.DEC, STATUS),
}
aerotp.fields = field

local problem = {
    hec = ProtoExpert.new("aerotp.hec.bad", "Header check is wrong", expert.group.CHECKSUM, expert.severity.ERROR),
    crc = ProtoExpert.new("aerotp.crc.bad", "Payload check is wrong", expert.group.CHECKSUM, expert.severity.ERROR),
    mendable = ProtoExpert.new(
        "aerotp.crc.mendable", "Payload check is wrong; parity may mend it", expert.group.CHECKSUM, expert.severity.WARN
    ),
    short = ProtoExpert.new("aerotp.short", "Shorter than its header says", expert.group.MALFORMED, expert.severity.ERROR),
    length = ProtoExpert.new("aerotp.len.bad", "Length is not that of its parts", expert.group.MALFORMED, expert.severity.ERROR),
    list = ProtoExpert.new("aerotp.mack.bad", "No list of a MACK has this length", expert.group.MALFORMED, expert.severity.ERROR),
    field = ProtoExpert.new("aerotp.extended.bad", "Extended fields are malformed", expert.group.MALFORMED, expert.severity.ERROR),
    value = ProtoExpert.new("aerotp.value.bad", "A value that means nothing", expert.group.PROTOCOL, expert.severity.ERROR),
    unknown = ProtoExpert.new(
        "aerotp.extended.unknown", "Unknown field that must be known", expert.group.UNDECODED, expert.severity.WARN
    ),
    version = ProtoExpert.new("aerotp.version.other", "Another version of AeroTP", expert.group.UNDECODED, expert.severity.WARN),
    sealed = ProtoExpert.new("aerotp.sealed.note", "In the form for sealed packets, but not sealed", expert.group.UNDECODED, expert.severity.NOTE),
}
aerotp.experts = problem

-- CRC-16/IBM-3740 over a range.
local CRC_16 = {}
for byte = 0, 255 do
    local value = bit.lshift(byte, 8)
    for _ = 1, 8 do
        local shifted = bit.lshift(value, 1)
        value = bit.band(bit.band(value, 0x8000) ~= 0 and bit.bxor(shifted, 0x1021) or shifted, 0xffff)
    end
    CRC_16[byte] = value
end

local function crc_16(range)
    local value, bytes = 0xffff, range:bytes()
    for i = 0, bytes:len() - 1 do
        local index = bit.bxor(bit.rshift(value, 8), bytes:get_index(i))
        value = bit.bxor(bit.band(bit.lshift(value, 8), 0xffff), CRC_16[index])
    end
    return value
end

-- CRC-32/ISO-HDLC over a range.
local CRC_32 = {}
for byte = 0, 255 do
    local value = byte
    for _ = 1, 8 do
        local shifted = bit.rshift(value, 1)
        value = bit.band(value, 1) ~= 0 and bit.bxor(shifted, 0xedb88320) or shifted
    end
    CRC_32[byte] = value
end

local function crc_32(range)
    local value = 0xffffffff
    if range then
        local bytes = range:bytes()
        for i = 0, bytes:len() - 1 do
            local index = bit.band(bit.bxor(value, bytes:get_index(i)), 0xff)
            value = bit.bxor(bit.rshift(value, 8), CRC_32[index])
        end
    end
    return bit.bnot(value) % 2 ^ 32
end

local function has(flags, flag)
    return bit.band(flags, flag) ~= 0
end

-- Bytes of the header with its optional fields; nil if the capture ends before they say how many.
local function header_bytes(tvb)
    local flags, bytes = tvb(13, 1):uint(), LEAST_BYTES
    if has(flags, ASYN) then bytes = bytes + 4 end
    if has(flags, FEC) then bytes = bytes + 4 end
    if has(flags, REPAIR) then bytes = bytes + 16 end
    if has(flags, EXTENDED) then
        local at = bytes - END_BYTES
        if tvb:captured_len() <= at then return nil end
        bytes = bytes + 4 * tvb(at, 1):uint()
    end
    return bytes <= tvb:captured_len() and bytes or nil
end

local function extended_fields(range, tree)
    local branch = tree:add(aerotp, range, "Extended fields")
    branch:add(field.extended_words, range(0, 1))
    local at, bytes = 1, range:len()
    while at < bytes do
        local kind = range(at, 1):uint()
        if kind == 0 then
            branch:add(field.extended_type, range(at, 1))
            at = at + 1
        else
            local length = at + 1 < bytes and range(at + 1, 1):uint()
            if not length or at + 2 + length > bytes then
                branch:add_proto_expert_info(problem.field)
                return
            end
            local twig = branch:add(field.extended_type, range(at, 1))
            twig:add(field.extended_length, range(at + 1, 1))
            if kind == CLASS_OF_SERVICE then
                if length == 1 then twig:add(field.class, range(at + 2, 1)) end
                if length ~= 1 or range(at + 2, 1):uint() > 7 then twig:add_proto_expert_info(problem.field) end
            elseif kind == FORWARD or kind == SKIPPED then
                local number = kind == FORWARD and field.forward or field.skipped
                if length == 4 then twig:add(number, range(at + 2, 4)) end
                if length ~= 4 then twig:add_proto_expert_info(problem.field) end
            else
                if length > 0 then twig:add(field.extended_value, range(at + 2, length)) end
                if has(kind, MUST_BE_KNOWN) then twig:add_proto_expert_info(problem.unknown) end
            end
            at = at + 2 + length
        end
    end
    if bytes == 0 then branch:add_proto_expert_info(problem.field) end
end

-- A number as RFC 9000, section 16, writes it, and where the next one begins; nothing if it is not all there. A double holds what
-- a list may have, 32 bits.
local function number(range, at)
    if at >= range:len() then return nil end
    local length = 2 ^ range(at, 1):bitfield(0, 2)
    if at + length > range:len() then return nil end
    local value = range(at, 1):bitfield(2, 6)
    for n = at + 1, at + length - 1 do value = value * 256 + range(n, 1):uint() end
    return value, at + length
end

-- Edges as distances from the one before, the first from ACK number 0: a unit, then each distance in units.
local function distances(range, branch, ack)
    local blocks, edge = {}, ack
    local unit, at = number(range, MACK_FIXED_BYTES)
    if unit then branch:add(field.unit, range(MACK_FIXED_BYTES, at - MACK_FIXED_BYTES), unit) end
    at = at or range:len()
    while at < range:len() do
        local edges = {}
        for n, name in ipairs({ field.edge_start, field.edge_end }) do
            local distance, behind = number(range, at)
            if not distance or distance * unit >= 2 ^ 32 then
                branch:add_proto_expert_info(problem.list)
                return blocks
            end
            edge = (edge + distance * unit) % 2 ^ 32
            branch:add(name, range(at, behind - at), edge)
            edges[n], at = string.format("%.0f", edge), behind
        end
        blocks[#blocks + 1] = edges[1] .. "-" .. edges[2]
    end
    return blocks
end

local function list(range, tree, ack)
    local bytes = range:len()
    local has_distances = bytes >= MACK_FIXED_BYTES and range(4, 4):bitfield(3, 1) == 1
    if bytes < MACK_FIXED_BYTES or (not has_distances and (bytes - MACK_FIXED_BYTES) % 8 ~= 0) then
        tree:add_proto_expert_info(problem.list)
        return ""
    end
    local branch = tree:add(aerotp, range, "Acknowledgement")
    branch:add(field.echo, range(0, 4))
    branch:add(field.from_start, range(4, 4))
    branch:add(field.to_end, range(4, 4))
    branch:add(field.counts, range(4, 4))
    branch:add(field.distances, range(4, 4))
    branch:add(field.held, range(4, 4))
    local held = range(4, 4):bitfield(8, 24) * 2 ^ range(4, 4):bitfield(4, 4) / 1e6
    branch:add(field.held_s, range(4, 4), held):set_generated()
    branch:add(field.window, range(8, 4))
    branch:add(field.marked, range(12, 2))
    branch:add(field.damaged, range(14, 2))
    local blocks = has_distances and distances(range, branch, ack) or {}
    for at = MACK_FIXED_BYTES, has_distances and 0 or bytes - 8, 8 do
        branch:add(field.edge_start, range(at, 4))
        branch:add(field.edge_end, range(at + 4, 4))
        blocks[#blocks + 1] = range(at, 4):uint() .. "-" .. range(at + 4, 4):uint()
    end
    return #blocks > 0 and " Blocks=" .. table.concat(blocks, ",") or ""
end

local function trailer(tvb, tree, at, flags, length, words, description)
    local captured, whole = tvb:captured_len(), tvb:reported_len()
    local parity_bytes, check_bytes = 4 * words, has(flags, CRC) and CHECK_BYTES or 0
    if at + length + parity_bytes + check_bytes ~= whole then
        tree:add_proto_expert_info(problem.length)
        return description
    end
    local body = length > 0 and at + length <= captured and tvb(at, length)
    if has(flags, MACK) then
        if body then
            description = description .. list(body, tree, tvb(4, 4):uint())
        elseif length == 0 then
            tree:add_proto_expert_info(problem.list)
        end
    elseif body then
        tree:add(field.payload, body)
    end
    if words > 0 and at + length + parity_bytes <= captured then
        tree:add(field.parity, tvb(at + length, parity_bytes))
    end
    if check_bytes > 0 then
        local status = UNVERIFIED
        if whole <= captured then
            local range = tvb(whole - CHECK_BYTES, CHECK_BYTES)
            local item = tree:add(field.crc, range)
            status = range:uint() == crc_32(body or nil) and GOOD or BAD
            if status == BAD then item:add_proto_expert_info(words > 0 and problem.mendable or problem.crc) end
        end
        tree:add(field.crc_status, status):set_generated()
    end
    return description
end

local NAMES = { { ASYN, "ASYN" }, { AFIN, "AFIN" }, { MACK, "MACK" }, { RESET, "RESET" }, { REPAIR, "REPAIR" } }

local function names(flags)
    local set = {}
    for _, flag in ipairs(NAMES) do
        if has(flags, flag[1]) then set[#set + 1] = flag[2] end
    end
    return #set > 0 and "[" .. table.concat(set, ", ") .. "] " or ""
end

function aerotp.dissector(tvb, pinfo, root)
    local captured, whole = tvb:captured_len(), tvb:reported_len()
    if captured < LEAST_BYTES then
        if whole < LEAST_BYTES then root:add(aerotp, tvb()):add_proto_expert_info(problem.short) end
        return captured
    end
    pinfo.cols.protocol = "AeroTP"
    local tree = root:add(aerotp, tvb())
    local version, sealed = tvb(12, 1):bitfield(0, 2), tvb(12, 1):bitfield(2, 1)
    if version ~= VERSION or sealed == 1 then
        tree:add(field.version, tvb(12, 1))
        tree:add(field.sealed, tvb(12, 1))
        local is_sealed = version == VERSION
        tree:add_proto_expert_info(is_sealed and problem.sealed or problem.version)
        pinfo.cols.info = is_sealed and "sealed form" or "version " .. version
        return captured
    end

    local source, destination = tvb(0, 2):uint(), tvb(2, 2):uint()
    tree:add(field.source, tvb(0, 2))
    tree:add(field.destination, tvb(2, 2))
    tree:add(field.port, tvb(0, 2)):set_hidden()
    tree:add(field.port, tvb(2, 2)):set_hidden()
    local sequence = tvb(4, 4):uint()
    tree:add(field.sequence, tvb(4, 4))
    tree:add(field.timestamp, tvb(8, 4))
    tree:add(field.version, tvb(12, 1))
    tree:add(field.sealed, tvb(12, 1))
    local mode = tvb(12, 1):bitfield(3, 3)
    local item = tree:add(field.mode, tvb(12, 1))
    if not MODES[mode] then item:add_proto_expert_info(problem.value) end
    tree:add(field.ecn, tvb(12, 1))
    local flags = tvb(13, 1):uint()
    local branch = tree:add(field.flags, tvb(13, 1))
    local all = { "asyn", "afin", "mack", "reset", "has_fec", "has_repair", "has_crc", "extended" }
    for _, name in ipairs(all) do
        branch:add(field[name], tvb(13, 1))
    end
    local length = tvb(14, 2):uint()
    tree:add(field.length, tvb(14, 2))
    if has(flags, MACK) then tree:add(field.ack, tvb(4, 4)) end

    local header = header_bytes(tvb)
    if not header then
        tree:add_proto_expert_info(problem.short)
        return captured
    end
    local at, words = FIXED_BYTES, 0
    if has(flags, ASYN) then
        tree:add(field.opening, tvb(at, 4))
        at = at + 4
    end
    if has(flags, FEC) then
        words = tvb(at, 2):uint()
        item = tree:add(field.fec_words, tvb(at, 2))
        if words == 0 or words > 256 or not has(flags, CRC) then item:add_proto_expert_info(problem.value) end
        tree:add(field.fec_reserved, tvb(at + 2, 2))
        at = at + 4
    end
    if has(flags, REPAIR) then
        branch = tree:add(aerotp, tvb(at, 16), "Repair symbol")
        branch:add(field.repair_start, tvb(at, 4))
        branch:add(field.repair_bytes, tvb(at + 4, 4))
        branch:add(field.repair_symbol_bytes, tvb(at + 8, 2))
        branch:add(field.repair_symbols, tvb(at + 10, 2))
        branch:add(field.repair_index, tvb(at + 12, 4))
        at = at + 16
    end
    if has(flags, EXTENDED) then
        local bytes = header - END_BYTES - at
        if bytes == 0 then
            tree:add_proto_expert_info(problem.field)
        else
            extended_fields(tvb(at, bytes), tree)
        end
        at = at + bytes
    end
    tree:add(field.tag, tvb(at, 2))
    item = tree:add(field.hec, tvb(at + 2, 2))
    local is_right = crc_16(tvb(0, header - 2)) == tvb(at + 2, 2):uint()
    tree:add(field.hec_status, is_right and GOOD or BAD):set_generated()

    local description = source .. " → " .. destination .. " " .. names(flags) .. "Seq=" .. sequence .. " Len=" .. length
    if is_right then
        description = trailer(tvb, tree, header, flags, length, words, description)
    else
        item:add_proto_expert_info(problem.hec)
        description = description .. " [wrong header check]"
    end
    tree:append_text(", " .. description)
    pinfo.cols.info = description
    return captured
end

-- A datagram is AeroTP if it begins with a header whose check is right.
local function is_aerotp(tvb)
    if tvb:captured_len() < LEAST_BYTES or tvb(12, 1):bitfield(0, 2) ~= VERSION or tvb(12, 1):bitfield(2, 1) == 1 then
        return false
    end
    local header = header_bytes(tvb)
    return header ~= nil and crc_16(tvb(0, header - 2)) == tvb(header - 2, 2):uint()
end

DissectorTable.get("ip.proto"):add(254, aerotp)
DissectorTable.get("udp.port"):add_for_decode_as(aerotp)
aerotp:register_heuristic("udp", function(tvb, pinfo, root)
    if not is_aerotp(tvb) then return false end
    aerotp.dissector(tvb, pinfo, root)
    return true
end)
