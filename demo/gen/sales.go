package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// partner is a business partner.
type partner struct {
	id, name, country string
	supplier          bool
}

// domain is the partner's name as names of hosts are spelled.
func (p partner) domain() string {
	plain := strings.NewReplacer(" ", "-", "ä", "a", "ö", "o", "ü", "u", "è", "e", "ø", "o", "õ", "o", "ç", "c")
	return plain.Replace(strings.ToLower(p.name)) + ".example.com"
}

// product is what orders are made of. Money is in cents.
type product struct {
	id    string
	price int
}

// newEPMSheet is a sheet of the part epm, whose tables have keys of their own.
func newEPMSheet(table string, header ...string) *sheet {
	return &sheet{part: "epm", table: table, header: header}
}

// sales makes the business partners, what they sell and buy, and the value helps.
func sales() []*sheet {
	partners, list := partners()
	products, offers := products(list)
	orders, items := orders(list, offers)
	return append(valueHelps(), partners, contacts(list), products, orders, items)
}

// name|legal form|country|city|postal code|street|building; the first is the supplier that every example names.
const partnerLines = `
Northwind Instruments|GmbH|DE|Heidelberg|69115|Bergheimer Straße|12
Alster Handel|KG|DE|Hamburg|20095|Mönckebergstraße|7
Isartal Systeme|AG|DE|Munich|80331|Sendlinger Straße|31
Spreewerk|GmbH|DE|Berlin|10115|Chausseestraße|88
Rheinblick Büro|GmbH|DE|Cologne|50667|Hohe Straße|52
Schwarzwald Optik|GmbH|DE|Freiburg|79098|Kaiser-Joseph-Straße|210
Elbe Elektronik|AG|DE|Dresden|01067|Wilsdruffer Straße|19
Donau Digital|GmbH|AT|Vienna|1010|Kärntner Straße|38
Salzach Technik|GmbH|AT|Salzburg|5020|Getreidegasse|9
Limmat Computing|AG|CH|Zurich|8001|Bahnhofstrasse|64
Lac Bleu|SA|CH|Geneva|1204|Rue du Rhone|48
Seine Bureautique|SA|FR|Paris|75002|Rue de la Paix|11
Garonne Informatique|SARL|FR|Toulouse|31000|Rue d'Alsace-Lorraine|25
Atelier Lumière|SARL|FR|Lyon|69002|Rue de la République|73
Canal House Trading|BV|NL|Amsterdam|1012|Damrak|70
Maas Data|BV|NL|Rotterdam|3011|Coolsingel|42
Flandria Tech|NV|BE|Antwerp|2000|Meir|85
Tajo Sistemas|SA|ES|Madrid|28013|Gran Vía|28
Costa Azul Equipos|SL|ES|Valencia|46002|Calle Colón|15
Douro Audio|Lda|PT|Porto|4000|Rua de Santa Catarina|112
Arno Uffici|SpA|IT|Florence|50123|Via de' Tornabuoni|5
Lombardia Informatica|SpA|IT|Milan|20121|Via Dante|14
Thames Peripherals|Ltd|GB|London|EC2V 6AA|Cheapside|107
Mersey Office Supply|Ltd|GB|Liverpool|L1 4DQ|Bold Street|61
Clyde Components|plc|GB|Glasgow|G1 3SL|Buchanan Street|90
Liffey Networks|Ltd|IE|Dublin|D02 K330|Dame Street|33
Øresund Display|A/S|DK|Copenhagen|1160|Strøget|17
Fjord Storage|AS|NO|Oslo|0154|Karl Johans gate|22
Mälar Print|AB|SE|Stockholm|11157|Drottninggatan|50
Vistula Hardware|Sp zoo|PL|Warsaw|00-020|Nowy Świat|41
Moldau Electronics|sro|CZ|Prague|110 00|Na Příkopě|8
Hudson Office Depot|Inc.|US|New York|10001|West 31st Street|350
Lakeshore Technologies|Inc.|US|Chicago|60601|North Michigan Avenue|205
Golden Gate Devices|Inc.|US|San Francisco|94105|Mission Street|425
Puget Sound Systems|LLC|US|Seattle|98101|Pike Street|600
Lone Star Computers|Inc.|US|Dallas|75201|Main Street|1500
Maple Leaf Outfitters|Inc.|CA|Toronto|M5H 2N2|Bay Street|180
Sierra Verde|SA|MX|Mexico City|06600|Paseo de la Reforma|222
Copacabana Soluções|Ltda|BR|Rio de Janeiro|22021|Avenida Atlântica|1702
Pampas Digital|SA|AR|Buenos Aires|C1043|Avenida Corrientes|940
Sakura Denki|KK|JP|Tokyo|104-0061|Ginza|4
Kansai Keyboards|KK|JP|Osaka|530-0001|Umeda|3
Han River Displays|Co|KR|Seoul|04524|Sejong-daero|110
Lion City Logistics|Pte|SG|Singapore|048616|Raffles Place|6
Deccan Software House|Pvt|IN|Bangalore|560001|Mahatma Gandhi Road|45
Harbour Bridge Supplies|Pty|AU|Sydney|2000|George Street|483
`

// currencies are those that are not the euro, by country.
var currencies = map[string]string{
	"CH": "CHF", "GB": "GBP", "DK": "DKK", "NO": "NOK", "SE": "SEK", "PL": "PLN", "CZ": "CZK", "US": "USD", "CA": "CAD", "MX": "MXN", "BR": "BRL",
	"AR": "ARS", "JP": "JPY", "KR": "KRW", "SG": "SGD", "IN": "INR", "AU": "AUD",
}

// founded is when the sales data begins; changes follow it.
var founded = today.AddDate(0, -9, 0)

func partners() (*sheet, []partner) {
	d := newDice("business_partner")
	s := newEPMSheet("business_partner", "business_partner_id", "company_name", "legal_form", "business_partner_role", "currency_code", "email_address", "web_address",
		"phone_number", "fax_number", "city", "postal_code", "street", "building", "country", "address_type", "created_at", "changed_at")
	var list []partner
	for i, line := range strings.Split(strings.TrimSpace(partnerLines), "\n") {
		f := strings.Split(line, "|")
		p := partner{id: fmt.Sprintf("%010d", 100000000+i), name: f[0], country: f[2], supplier: i%2 == 0}
		role, currency := "01", "EUR"
		if p.supplier {
			role = "02"
		}
		if known := currencies[p.country]; known != "" {
			currency = known
		}
		domain := p.domain()
		phone := fmt.Sprintf("0%03d/555-%04d", 200+i*13, 1000+d.n(9000))
		created := founded.Add(time.Duration(i) * 11 * time.Minute)
		s.add(p.id, p.name, f[1], role, currency, "info@"+domain, "https://"+domain, phone, phone[:len(phone)-1]+"0", f[3], f[4], f[5], f[6], p.country, "02",
			stamp(created), stamp(created.Add(time.Duration(d.n(200*24*60))*time.Minute)))
		list = append(list, p)
	}
	return s, list
}

// givenNames are female in the even places.
var givenNames = []string{
	"Anna", "Paul", "Laura", "Marc", "Sofia", "Tom", "Elena", "David", "Marie", "Oliver", "Julia", "Peter", "Ingrid", "Jan", "Claire", "Hugo", "Nora", "Simon",
	"Alice", "Victor", "Maya", "Daniel", "Helen", "Martin",
}

var familyNames = []string{
	"Berger", "Novak", "Martin", "Silva", "Rossi", "Jensen", "Keller", "Moreau", "Costa", "Lindberg", "Murphy", "Tanaka", "Walker", "Fischer", "Kowalski",
	"Dubois", "Santos", "Meyer", "Olsen", "Parker", "Weber", "Ricci", "Clark",
}

func contacts(list []partner) *sheet {
	d := newDice("contact")
	s := newEPMSheet("contact", "contact_guid", "business_partner_id", "title", "first_name", "last_name", "initials", "sex", "phone_number", "email_address", "language",
		"date_of_birth", "city", "postal_code", "street", "building", "country", "address_type")
	lines := strings.Split(strings.TrimSpace(partnerLines), "\n")
	for i, p := range list {
		f := strings.Split(lines[i], "|")
		for k := range 1 + i%2 {
			at := d.n(len(givenNames))
			first, last := givenNames[at], pick(d, familyNames)
			title, sex := "Ms.", "F"
			if at%2 == 1 {
				title, sex = "Mr.", "M"
			}
			language := "EN"
			switch p.country {
			case "DE", "AT", "CH":
				language = "DE"
			case "FR":
				language = "FR"
			case "ES", "MX", "AR":
				language = "ES"
			}
			born := time.Date(1960+d.n(40), time.Month(1+d.n(12)), 1+d.n(28), 0, 0, 0, 0, time.UTC)
			mail := strings.ToLower(first+"."+last) + "@" + p.domain()
			s.add(id("contact", fmt.Sprint(p.id, "/", k)), p.id, title, first, last, first[:1]+last[:1], sex, fmt.Sprintf("0%03d/555-%04d", 200+i*13, 1000+d.n(9000)), mail,
				language, date(born), f[3], f[4], f[5], f[6], p.country, "02")
		}
	}
	return s
}

// category|name {of one|of another}|what it is|price of the first|kg|width|depth|height in cm; each further one costs a sixth more.
const productLines = `
Notebooks|Notebook Basic {15|17|18|19}|Notebook for the desk at home, {15|17|18|19} inch screen, 16 GB memory, 512 GB disk|956.00|4.2|30|18|3
Notebooks|Notebook Professional {15|17}|Notebook for the work, {15|17} inch screen, 32 GB memory, 1 TB disk|1999.00|4.3|33|20|3
Notebooks|Ultraslim Notebook {13|14}|Light notebook for journeys, {13|14} inch screen, 16 GB memory|1249.00|1.2|30|21|1.5
Tablets|Slate {8|10|12}|Tablet with a {8|10|12} inch screen and a pen|329.00|0.5|24|17|0.7
Tablets|Reader {6|7}|Reader for books, {6|7} inch screen that needs no light|119.00|0.2|12|17|0.8
Smartphones|Pocket Phone {Mini|Plus|Max}|Smartphone, unlocked, 128 GB|399.00|0.18|7|15|0.8
Smartphones|Rugged Phone {One|Two}|Smartphone that may fall into water|459.00|0.31|8|17|1.6
PCs|Desktop Tower {S|M|L}|Personal computer in a quiet case|699.00|9.5|20|45|40
PCs|Gaming Tower {One|Two}|Personal computer with a graphics card that shows|1499.00|14|24|50|48
Workstations|Render Station {8|16|32}|Workstation with {8|16|32} processor cores|2899.00|18|22|52|45
Servers|Rack Server {1U|2U|4U}|Server for the rack, {1U|2U|4U} high|3499.00|19|48|75|9
Flat Screen Monitors|Ergo Screen {24|27|32}|Monitor with {24|27|32} inches, height adjustable|230.00|5.6|62|22|50
Flat Screen Monitors|Curved View {34|38}|Curved monitor with {34|38} inches|549.00|8.4|82|26|54
Flat Screen TVs|Cinema TV {43|55|65}|Television with {43|55|65} inches and four ports|499.00|16|123|8|71
Projectors|Beam {100|200|300}|Projector for rooms of {10|25|60} people|620.00|3.1|33|25|11
Printers|Laser Basic {A|B}|Laser printer, black and white, 30 pages a minute|180.00|8|37|35|25
Printers|Laser Colour {A|B}|Laser printer, colour, two trays|390.00|17|42|45|33
Printers|Photo Jet {S|M}|Inkjet printer for photographs|149.00|6|45|35|16
Printers|Label Printer {Desk|Mobile}|Printer for labels, black on white|99.00|0.9|12|15|14
Scanners|Flat Scan {300|600}|Scanner, {300|600} dots per inch|89.00|2.2|28|42|6
Scanners|Sheet Scan {40|60}|Scanner that takes {40|60} sheets a minute|329.00|3.4|30|17|16
Multifunction Printers|Office All in One {2|3}|Prints, scans, copies and faxes|420.00|19|48|47|40
Keyboards|Ergonomic Keyboard {Wired|Wireless}|Split keyboard with a rest for the wrists|59.00|0.9|48|24|4
Keyboards|Compact Keyboard {Wired|Wireless}|Keyboard without a number block|39.00|0.5|32|14|2
Mice|Optical Mouse {Wired|Wireless}|Mouse with three buttons and a wheel|14.00|0.1|6|11|4
Mice|Vertical Mouse {Left|Right}|Mouse that is held like a handle, for the {left|right} hand|34.00|0.15|8|11|7
Headsets|Call Headset {Mono|Stereo}|Headset with a microphone that filters noise|49.00|0.16|17|6|19
Speakers|Desk Speakers {2.0|2.1}|Pair of speakers for the desk|45.00|1.8|10|14|20
Speakers|Conference Speaker {S|L}|Speaker and microphone for meeting rooms|129.00|0.4|14|14|4
Hard Disks|External Disk {1 TB|2 TB|4 TB}|External disk, {1 TB|2 TB|4 TB}|64.00|0.2|8|12|1.5
Memory|Memory Module {16 GB|32 GB|64 GB}|Memory of {16 GB|32 GB|64 GB} for desktops and servers|54.00|0.03|13|3|0.5
USB Sticks|Memory Stick {32 GB|64 GB|128 GB}|USB stick with {32 GB|64 GB|128 GB}|9.90|0.01|2|6|1
Routers|Home Router {AX|BE}|Wireless router with four ports|119.00|0.6|24|18|5
Routers|Office Router {10|50}|Router for {10|50} people, with a firewall|389.00|1.9|44|25|4
Switches|Gigabit Switch {8|16|24|48}|Switch with {8|16|24|48} ports|49.00|0.8|16|10|3
Cables|Patch Cable {1 m|3 m|10 m}|Network cable, {1 m|3 m|10 m} long|3.90|0.1|10|10|2
Cables|Display Cable {1 m|2 m|5 m}|Cable for monitors, {1 m|2 m|5 m} long|11.90|0.15|12|12|3
Bags|Laptop Bag {13|15|17}|Bag for notebooks up to {13|15|17} inches|29.00|0.7|40|10|30
Bags|Backpack {20 l|30 l}|Backpack with a padded compartment, {20 l|30 l}|59.00|0.9|30|16|46
Docking Stations|Dock {Basic|Pro}|Docking station with one cable for everything|149.00|0.5|20|8|3
Webcams|Desk Camera {HD|4K}|Camera for meetings, {HD|4K}|69.00|0.15|9|5|6
Graphics Cards|Graphics Card {8 GB|16 GB}|Graphics card with {8 GB|16 GB}|349.00|1.1|27|12|5
Software|Office Suite {Home|Business}|Word processor, spreadsheet and slides, a year for one person|79.00|0|0|0|0
Software|Antivirus {1|5}|Protection for {1|5} devices, a year|24.00|0|0|0|0
Software|Photo Studio {Light|Full}|Sorts and mends photographs|89.00|0|0|0|0
Accessories|Wrist Rest {Gel|Foam}|Rest for the wrists, filled with {gel|foam}|12.50|0.3|46|8|2
Accessories|Monitor Arm {Single|Double}|Arm for the desk|79.00|3.6|12|50|45
Accessories|Cleaning Kit {S|M}|Spray, cloth and brush|8.50|0.3|10|5|20
Accessories|Cable Lock {Key|Code}|Lock that ties a notebook to a desk|24.90|0.2|12|12|3
Services|Installation {Desk|Server}|Somebody comes and sets it up|95.00|0|0|0|0
Services|Extended Warranty {1 year|3 years}|Repairs for another {1 year|3 years}|59.00|0|0|0|0
`

// variant is a line with the k-th of each braced list, and how many there are.
func variant(line string, k int) (string, int) {
	count := 1
	for {
		open := strings.IndexByte(line, '{')
		if open < 0 {
			return line, count
		}
		end := open + strings.IndexByte(line[open:], '}')
		list := strings.Split(line[open+1:end], "|")
		count = len(list)
		line = line[:open] + list[k] + line[end+1:]
	}
}

func products(list []partner) (*sheet, []product) {
	d := newDice("product")
	s := newEPMSheet("product", "product_id", "type_code", "category", "name", "description", "supplier_id", "tax_tarif_code", "measure_unit", "currency_code", "price",
		"weight_measure", "weight_unit", "width", "depth", "height", "dim_unit", "created_at", "changed_at")
	var suppliers []partner
	for _, p := range list {
		if p.supplier {
			suppliers = append(suppliers, p)
		}
	}
	var offers []product
	for _, line := range strings.Split(strings.TrimSpace(productLines), "\n") {
		for k, n := 0, 1; k < n; k++ {
			var text string
			text, n = variant(line, k)
			f := strings.Split(text, "|")
			p := product{id: fmt.Sprintf("HT-%04d", 1000+len(offers)), price: cents(f[3]) * (6 + k) / 6}
			typ, weightUnit, dimUnit := "PR", "KG", "CM"
			weight, width, depth, height := f[4], f[5], f[6], f[7]
			if f[4] == "0" {
				typ, weight, weightUnit, width, depth, height, dimUnit = "SE", "", "", "", "", "", ""
			}
			if f[0] == "Software" {
				typ = "PR"
			}
			created := founded.Add(24*time.Hour + time.Duration(len(offers))*7*time.Minute)
			supplier := pick(d, suppliers)
			if len(offers) < 4 {
				supplier = suppliers[0]
			}
			s.add(p.id, typ, f[0], f[1], f[2], supplier.id, strconv.Itoa(1+d.weighted(90, 10)), "EA", "EUR", money(p.price), weight, weightUnit, width, depth, height, dimUnit,
				stamp(created), stamp(created.Add(time.Duration(d.n(150*24*60))*time.Minute)))
			offers = append(offers, p)
		}
	}
	return s, offers
}

// cents reads an amount of money.
func cents(s string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(s, ".", ""))
	if err != nil {
		panic(err) // a slip in this file
	}
	return n
}

// money writes cents as rules write amounts: without zeros at the end.
func money(n int) string {
	s := fmt.Sprintf("%d.%02d", n/100, n%100)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// taxOf is 19 % of an amount of cents, rounded.
func taxOf(net int) int { return (net*19 + 50) / 100 }

var (
	lifecycles = map[string]string{"N": "New", "P": "In Progress", "C": "Closed", "X": "Canceled"}
	billings   = map[string]string{"": "Initial", "P": "Paid"}
	deliveries = map[string]string{"": "Initial", "D": "Delivered"}
)

func orders(list []partner, offers []product) (*sheet, *sheet) {
	d := newDice("sales_order")
	s := newEPMSheet("sales_order", "sales_order_id", "note", "customer_id", "currency_code", "net_amount", "tax_amount", "gross_amount", "lifecycle_status",
		"lifecycle_status_description", "billing_status", "billing_status_description", "delivery_status", "delivery_status_description", "created_at", "changed_at")
	items := newEPMSheet("sales_order_line_item", "sales_order_id", "item_position", "product_id", "note", "quantity", "quantity_unit", "unit_price", "currency_code",
		"net_amount", "tax_amount", "gross_amount", "delivery_date")
	var customers []partner
	for _, p := range list {
		if !p.supplier {
			customers = append(customers, p)
		}
	}
	const count = 100
	for i := range count {
		number := fmt.Sprintf("%010d", 500000000+i)
		created := today.Add(-time.Duration(count-i)*43*time.Hour + time.Duration(d.n(30*60))*time.Minute)
		net, tax := 0, 0
		for k := range 1 + d.weighted(20, 30, 25, 15, 10) {
			p, quantity := pick(d, offers), 1+d.weighted(50, 25, 10, 5, 10)
			amount := p.price * quantity
			note := ""
			if d.chance(20) {
				note = pick(d, []string{"Please call before delivery", "With invoice to head office", "Gift wrapped", "To the back entrance"})
			}
			items.add(number, fmt.Sprintf("%010d", 10*(k+1)), p.id, note, strconv.Itoa(quantity), "EA", money(p.price), "EUR", money(amount), money(taxOf(amount)),
				money(amount+taxOf(amount)), stamp(created.AddDate(0, 0, 7+d.n(14)).Truncate(24*time.Hour)))
			net, tax = net+amount, tax+taxOf(amount)
		}
		// The older an order, the likelier it is over.
		lifecycle, billing, delivery := "N", "", ""
		switch age := count - i; {
		case d.chance(8):
			lifecycle = "X"
		case age > 40 || age > 20 && d.chance(50):
			lifecycle, billing, delivery = "C", "P", "D"
		case age > 10:
			lifecycle = "P"
			switch d.n(3) {
			case 0:
				billing = "P"
			case 1:
				delivery = "D"
			}
		}
		changed := created
		if lifecycle != "N" {
			changed = earlier(created.Add(time.Duration(1+d.n(20*24))*time.Hour), today)
		}
		s.add(number, pick(d, []string{"Regular order", "By telephone", "Order from the fair", "Follow-up order", "Urgent"}), pick(d, customers).id, "EUR", money(net), money(tax),
			money(net+tax), lifecycle, lifecycles[lifecycle], billing, billings[billing], delivery, deliveries[delivery], stamp(created), stamp(changed))
	}
	return s, items
}

// valueHelps makes the lists of codes: table, fields, and a record on each line.
func valueHelps() []*sheet {
	var sheets []*sheet
	for _, v := range []struct{ table, fields, records string }{
		{"vh_sex", "sex|shorttext", "F|Female\nM|Male"},
		{"vh_address_type", "address_type|shorttext", "01|Private\n02|Business"},
		{"vh_product_type_code", "type_code|shorttext", "PR|Product\nSE|Service"},
		{"vh_bp_role", "bp_role|shorttext", "01|Customer\n02|Supplier"},
		{"vh_language", "spras|sptxt", "DE|German\nEN|English\nES|Spanish\nFR|French\nIT|Italian\nJA|Japanese\nPT|Portuguese"},
		{"vh_unit_quantity", "msehi|msehl", "BOX|Box\nDZ|Dozen\nEA|Each\nPAA|Pair\nPC|Piece"},
		{"vh_unit_weight", "msehi|msehl", "G|Gram\nKG|Kilogram\nLB|Pound\nTON|Tonne"},
		{"vh_unit_length", "msehi|msehl", "CM|Centimeter\nIN|Inch\nM|Meter\nMM|Millimeter"},
		{"vh_country", "land1|landx|natio", countries},
		{"vh_currency", "waers|ltext", currencyNames},
		{"vh_category", "category", categories()},
	} {
		s := newEPMSheet(v.table, strings.Split(v.fields, "|")...)
		for _, line := range strings.Split(strings.TrimSpace(v.records), "\n") {
			f := strings.Split(line, "|")
			s.add(f[0], f[1:]...)
		}
		sheets = append(sheets, s)
	}
	return sheets
}

// categories are those that products have, one on a line.
func categories() string {
	var list []string
	for _, line := range strings.Split(strings.TrimSpace(productLines), "\n") {
		name, _, _ := strings.Cut(line, "|")
		if len(list) == 0 || list[len(list)-1] != name {
			list = append(list, name)
		}
	}
	return strings.Join(list, "\n")
}

const countries = `
AR|Argentina|Argentine
AT|Austria|Austrian
AU|Australia|Australian
BE|Belgium|Belgian
BR|Brazil|Brazilian
CA|Canada|Canadian
CH|Switzerland|Swiss
CZ|Czech Republic|Czech
DE|Germany|German
DK|Denmark|Danish
ES|Spain|Spanish
FR|France|French
GB|United Kingdom|British
IE|Ireland|Irish
IN|India|Indian
IT|Italy|Italian
JP|Japan|Japanese
KR|South Korea|Korean
MX|Mexico|Mexican
NL|Netherlands|Dutch
NO|Norway|Norwegian
PL|Poland|Polish
PT|Portugal|Portuguese
SE|Sweden|Swedish
SG|Singapore|Singaporean
US|USA|American
`

const currencyNames = `
ARS|Argentine Peso
AUD|Australian Dollar
BRL|Brazilian Real
CAD|Canadian Dollar
CHF|Swiss Franc
CZK|Czech Koruna
DKK|Danish Krone
EUR|Euro
GBP|British Pound
INR|Indian Rupee
JPY|Japanese Yen
KRW|South Korean Won
MXN|Mexican Peso
NOK|Norwegian Krone
PLN|Polish Zloty
SEK|Swedish Krona
SGD|Singapore Dollar
USD|US Dollar
`
