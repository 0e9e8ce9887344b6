package ords

// loadSegment is where rows are loaded: POST /ords/SCHEMA/ALIAS/batchload.
const loadSegment = "batchload"
