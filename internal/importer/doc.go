// Package importer turns definitions of other systems into files of a project: an exported script of ORDS' definition calls becomes
// SQL endpoints ([ORDS]). What cannot be carried over is listed with its line; nothing is left out in silence.
package importer
