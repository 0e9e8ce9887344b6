package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/internal/importer"
)

// importCommand groups the imports.
type importCommand struct {
	ORDS importORDSCommand `cmd:"" name:"ords" help:"Turn an exported script of ORDS' definition calls into SQL endpoints."`
}

type importORDSCommand struct {
	Script string `arg:"" type:"existingfile" help:"The script: calls of ORDS.DEFINE_MODULE, DEFINE_TEMPLATE, DEFINE_HANDLER and the like."`
	Folder string `arg:"" type:"path" help:"Project folder to write endpoints/ into. Files that exist are kept."`
	Schema string `help:"Alias of the schema when the script enables none." default:"api" placeholder:"NAME"`
}

// Help is the command's longer help.
func (importORDSCommand) Help() string {
	return `Writes a file for each handler. SQL that is only spelled otherwise is rewritten (NVL, FROM DUAL, MINUS); blocks that are nothing but statements, assignments and SELECT INTO become blocks of SQL. What neither database understands goes into unported/ beside endpoints/, where a project does not read it, and everything that was not carried over is listed with its line.

Example:
  weir import ords export.sql ./project
  weir apply ./project`
}

// Run writes the files.
func (c *importORDSCommand) Run(s streams) error {
	text, err := os.ReadFile(c.Script)
	if err != nil {
		return err
	}
	out, err := importer.ORDS(string(text), c.Schema)
	if err != nil {
		return usageError{fmt.Errorf("%s:%w", c.Script, err)}
	}
	if len(out.Files) == 0 {
		return usageError{fmt.Errorf("%s: there is no call of ORDS.DEFINE_HANDLER or DEFINE_SERVICE", c.Script)}
	}
	kept := 0
	for _, f := range out.Files {
		path := filepath.Join(c.Folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			fmt.Fprintf(s.out, "kept     %s\n", path)
			kept++
			continue
		}
		if err != nil {
			return err
		}
		_, err = file.WriteString(f.Text)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "written  %s\n", path)
	}
	for _, n := range out.Notes {
		fmt.Fprintf(s.out, "%s:%d: %s\n", c.Script, n.Line, n.Text)
	}
	fmt.Fprintf(s.out, "%d handlers, %d files kept, %d notes\n", len(out.Files), kept, len(out.Notes))
	return nil
}
